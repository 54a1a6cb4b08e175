"""What can stop `taskyard up`, each as one line that names the value and the remedy.

StandaloneError
├── SettingError          a setting that cannot be used
├── DataDirectoryError    the data directory cannot be used
├── PostgresError         the embedded PostgreSQL cannot be used
├── DatabaseError         the database named by --database-url cannot be used
└── ServiceError          a program that is part of Taskyard failed
    └── Killed            it was killed by a signal, so another start may help
"""


class StandaloneError(Exception):
    """The message is a whole sentence for the person at the terminal; no traceback is needed to act on it."""


class SettingError(StandaloneError):
    """A setting has a value outside its bounds."""


class DataDirectoryError(StandaloneError):
    """The data directory is in use, foreign, or not accessible."""


class PostgresError(StandaloneError):
    """The embedded PostgreSQL could not be prepared, started or recognised as our own."""


class DatabaseError(StandaloneError):
    """The database given by the user is down, too old, or its URL is malformed."""


class ServiceError(StandaloneError):
    """A child program failed for good."""


class Killed(ServiceError):
    """A signal ended a child program before it was done."""
