"""Commands of the apps: a file for each app, imported when one of its commands is called."""
