"""What a user reads when something is theirs to fix: one line, no traceback."""


class IsotraceError(Exception):
    """Base of every error that is shown to the user as a single line."""


class ConfigError(IsotraceError):
    """The config says something impossible; the message names the key's path, the value, what is allowed."""


class DataError(IsotraceError):
    """A file or checkpoint is not what it should be; the message names it and says what to do."""
