"""The one way in which a measure says that it has no value: a reason, which becomes the row's ``reason``.

Our choice: a NaN never travels alone, so a measure raises instead of returning one.
"""


class Undefined(Exception):
    """This measure has no value on these rows; the message is the reason that the table shows."""
