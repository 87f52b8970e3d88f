"""Random queries over random changes, checked against PostgreSQL's own answers; failures are made small."""
