"""Images from files and folders, and the names of the classes they show."""
