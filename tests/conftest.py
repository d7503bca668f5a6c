"""What holds for all tests: how long an example of hypothesis takes says nothing of the code on a busy machine."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
