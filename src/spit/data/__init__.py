"""Images from files, folders and shards, and the names of their classes."""
