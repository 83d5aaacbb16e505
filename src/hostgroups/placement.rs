//! Moves between writer and reader hostgroups, and the statuses a switchover sets.

use super::{Endpoint, HostgroupId, Hostgroups, Server, ServerStatus};
use admin::rows::ServerRow;

/// A move that a read_only result calls for.
enum Move {
    /// read_only=1 in the writer hostgroup.
    Demote,
    /// read_only=0 in the reader hostgroup alone.
    Promote,
}

impl Hostgroups {
    /// Whether a read_only result of an endpoint calls for any move.
    pub fn read_only_moves(&self, endpoint: &Endpoint, read_only: bool) -> bool {
        self.replication.iter().any(|pair| {
            self.read_only_move(pair.writer_hostgroup, pair.reader_hostgroup, endpoint, read_only).is_some()
        })
    }
    /// Applies a read_only result to every replication pair that has the endpoint. Returns a line for the log for each move.
    ///
    /// A server that is in the writer hostgroup already is left there with read_only=0, and its place in the reader
    /// hostgroup is not looked at: after a switchover that place follows the deployment's own flag.
    pub fn apply_read_only(
        &mut self,
        endpoint: &Endpoint,
        read_only: bool,
        writer_is_also_reader: bool,
    ) -> Vec<String> {
        let pairs: Vec<(HostgroupId, HostgroupId)> =
            self.replication.iter().map(|pair| (pair.writer_hostgroup, pair.reader_hostgroup)).collect();
        let mut lines = Vec::new();
        for (writer, reader) in pairs {
            match self.read_only_move(writer, reader, endpoint, read_only) {
                Some(Move::Demote) => {
                    self.demote(writer, reader, endpoint);
                    lines.push(format!(
                        "read_only=1 on {endpoint}: moved from writer hostgroup {writer} to reader hostgroup {reader}"
                    ));
                }
                Some(Move::Promote) => {
                    self.configure_writer(writer, reader, endpoint, writer_is_also_reader);
                    let verb = if writer_is_also_reader { "copied" } else { "moved" };
                    lines.push(format!(
                        "read_only=0 on {endpoint}: {verb} from reader hostgroup {reader} to writer hostgroup {writer}"
                    ));
                }
                None => {}
            }
        }
        lines
    }
    /// Moves a server from the writer to the reader hostgroup (read_only=1 action): copied there if absent (SHUNNED becomes ONLINE),
    /// OFFLINE_HARD in the writer hostgroup.
    pub fn demote(&mut self, writer: HostgroupId, reader: HostgroupId, endpoint: &Endpoint) {
        if self.present(writer, endpoint).is_some() {
            self.ensure(reader, writer, endpoint);
            self.retire(writer, endpoint);
        }
    }
    /// Ensures a server is in the writer hostgroup, and in the reader hostgroup exactly if `also_reader`. A server that is in
    /// neither, nor configured in the writer hostgroup, is unknown and stays so.
    pub fn configure_writer(
        &mut self,
        writer: HostgroupId,
        reader: HostgroupId,
        endpoint: &Endpoint,
        also_reader: bool,
    ) {
        self.ensure(writer, reader, endpoint);
        if self.present(writer, endpoint).is_none() {
            return;
        }
        if also_reader {
            self.ensure(reader, writer, endpoint);
        } else {
            self.retire(reader, endpoint);
        }
    }
    /// Adds a server that a topology names (a deployment's green writer, a cluster's reader) to a hostgroup if no row but OFFLINE_HARD
    /// is there, with what servers_defaults of the hostgroup says and defaults for the rest. True if added.
    pub fn add_discovered(&mut self, hostgroup: HostgroupId, endpoint: &Endpoint) -> bool {
        if self.present(hostgroup, endpoint).is_some() {
            return false;
        }
        let attributes = self.attributes.get(&hostgroup);
        let defaults = attributes.map(|row| row.servers_defaults().0).unwrap_or_default();
        let row = ServerRow::new(hostgroup, &*endpoint.host, endpoint.port);
        let row = ServerRow {
            weight: defaults.weight.unwrap_or(row.weight),
            max_connections: defaults.max_connections.unwrap_or(row.max_connections),
            use_ssl: defaults.use_ssl.unwrap_or(row.use_ssl),
            ..row
        };
        self.put(hostgroup, endpoint, row, ServerStatus::Online);
        true
    }
    /// ONLINE -> SHUNNED_AWS_BGD, also from a shun that would end by itself during the switchover. True if it changed.
    pub fn shun_aws_bgd(&mut self, hostgroup: HostgroupId, endpoint: &Endpoint) -> bool {
        self.replace_status(hostgroup, endpoint, ServerStatus::Online, ServerStatus::ShunnedAwsBgd)
    }
    /// SHUNNED_AWS_BGD -> ONLINE. True if it changed.
    pub fn unshun_aws_bgd(&mut self, hostgroup: HostgroupId, endpoint: &Endpoint) -> bool {
        self.replace_status(hostgroup, endpoint, ServerStatus::ShunnedAwsBgd, ServerStatus::Online)
    }

    /// OFFLINE_SOFT in either hostgroup is the administrator's word: such a server is moved by no check.
    fn read_only_move(
        &self,
        writer: HostgroupId,
        reader: HostgroupId,
        endpoint: &Endpoint,
        read_only: bool,
    ) -> Option<Move> {
        let in_writer = self.present(writer, endpoint).map(|server| server.status);
        let in_reader = self.present(reader, endpoint).map(|server| server.status);
        match (in_writer, in_reader) {
            (Some(status), _) if read_only && !status.is_offline() => Some(Move::Demote),
            (None, Some(status)) if !read_only && !status.is_offline() => Some(Move::Promote),
            _ => None,
        }
    }
    /// The server unless absent or OFFLINE_HARD, which is absent but for its connections.
    pub(super) fn present(&self, hostgroup: HostgroupId, endpoint: &Endpoint) -> Option<&Server> {
        self.server(hostgroup, endpoint).filter(|server| server.status != ServerStatus::OfflineHard)
    }
    /// Puts an endpoint into a hostgroup where it is not present, with its configured attributes there or else those it has
    /// in the hostgroup `from`.
    fn ensure(&mut self, hostgroup: HostgroupId, from: HostgroupId, endpoint: &Endpoint) {
        if self.present(hostgroup, endpoint).is_some() {
            return;
        }
        let source = self.present(from, endpoint);
        let configured = self.configured.get(&(hostgroup, endpoint.clone()));
        let Some(row) = configured.or(source.map(|server| &server.row)).cloned() else { return };
        let status = match source.map(|server| server.status) {
            Some(ServerStatus::OfflineSoft) => ServerStatus::OfflineSoft,
            _ => ServerStatus::Online,
        };
        self.put(hostgroup, endpoint, row, status);
    }
    fn put(&mut self, hostgroup: HostgroupId, endpoint: &Endpoint, row: ServerRow, status: ServerStatus) {
        let mut server = Server::new(ServerRow { hostgroup_id: hostgroup, ..row }, status);
        self.judge_latency(endpoint, &mut server);
        self.groups.entry(hostgroup).or_default().insert(endpoint.clone(), server);
    }
    /// Takes a server out of a hostgroup: OFFLINE_HARD until its last connection is gone.
    fn retire(&mut self, hostgroup: HostgroupId, endpoint: &Endpoint) {
        if let Some(server) = self.server_mut(hostgroup, endpoint) {
            server.set_status(ServerStatus::OfflineHard);
        }
    }
    fn replace_status(
        &mut self,
        hostgroup: HostgroupId,
        endpoint: &Endpoint,
        from: ServerStatus,
        to: ServerStatus,
    ) -> bool {
        match self.server_mut(hostgroup, endpoint) {
            Some(server) if server.lasting_status() == from => {
                server.set_status(to);
                true
            }
            _ => false,
        }
    }
}
