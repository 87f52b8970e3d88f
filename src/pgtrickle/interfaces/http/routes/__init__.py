"""The routes of the API, by subject. Each module has one function that makes its router."""
