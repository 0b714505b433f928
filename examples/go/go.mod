module tollgate.example/agent

go 1.19
