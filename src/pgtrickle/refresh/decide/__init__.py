"""What a refresh does about a window: follow it or load everything, here or in tasks."""
