# Environment of the group's hooks. WORKSPACE, the project's root directory, is set by the runner.
export CLUSTER_SIM_HOST_FILE="${WORKSPACE:-${PWD}}/groups/cluster_sim_rds_bgd/add-hosts"
export PROXYSQL_READY_PORTS_EXTRA="${TAP_SIMPORT:-3306}"
export SKIP_CLUSTER_START=1
