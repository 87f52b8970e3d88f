"""The running scheduler: its threads and connections, which act on what the policy decides."""
