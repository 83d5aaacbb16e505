//! COM_CHANGE_USER: the session ends and another begins on the same connection of the client.

use super::admission::Admission;
use super::dispatch::next_session;
use super::state::Session;
use std::sync::Arc;
use wire::auth::Accounts;
use wire::channel::Channel;
use wire::login::ServerOptions;
use wire::reply::Reply;
use wire::{SqlError, WireError};

/// How many refused changes of user a client of MariaDB may survive; then it is told that there is no such command.
const MOST_REFUSED: u8 = 3;

impl Session<'_> {
    /// Serves the command. Nothing is left of the session before it, whatever becomes of the new one: a connection it kept is reset or
    /// closed, its statements are dropped. After an error, which the client was told, its connection ends, as MySQL ends it, unless
    /// the client takes us for a MariaDB: there the user before goes on, in a new session.
    pub fn change_user(
        &mut self,
        client: &mut Channel,
        argument: &[u8],
        options: &ServerOptions,
        accounts: &dyn Accounts,
    ) -> Result<(), WireError> {
        let mariadb = wire::version::is_mariadb(&self.shared.config.variables().server_version);
        if mariadb && self.refused_changes >= MOST_REFUSED {
            let reply = Reply { channel: client, capabilities: self.capabilities, status: self.status };
            return reply.error(&SqlError::unknown_command());
        }
        self.clean_up();
        let enter = |user: &str, most| self.registered.change_user(user, most);
        let admission = Admission { accounts, shared: self.shared, enter };
        let (capabilities, nonce) = (self.capabilities, self.nonce);
        let login = match wire::login::change_user(client, argument, capabilities, nonce, options, &admission)
        {
            Ok(login) => login,
            Err(error @ WireError::Sql(_)) if mariadb => {
                self.shared.registry.note_login(&error);
                client.set_deadline(None);
                self.stay();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let (socket, registered) = (self.socket.clone(), Arc::clone(&self.registered));
        let session = Self::new(self.shared, socket, registered, &login);
        // A user who vanished meanwhile has none.
        let mut session = session.ok_or(WireError::Closed)?;
        session.want.session = next_session(self.want.session);
        // What COM_SET_OPTION said lasts as long as the client's connection.
        session.allow_multi_statements(self.allows_multi_statements());
        let hears_no_loss = self.hears_no_loss || session.hears_no_loss;
        *self = Self { refused_changes: self.refused_changes, hears_no_loss, ..session };
        Ok(())
    }
    /// Goes on as the user before, after a refusal.
    fn stay(&mut self) {
        self.refused_changes += 1;
        self.want.profile = Arc::new(self.want.profile.after_refused_change());
        self.begin_anew();
    }
}
