"""Random DDL beside random DML, with a running sidecar: what stream tables rely on changes under them."""
