//! How a login or a change of user ends: OK, or why not.

use super::exchange::{Exchange, Verdict};
use super::response::{ClientResponse, Unreadable, impermissible_charset};
use super::{Login, ServerOptions};
use crate::auth::{Accounts, NONCE, Secret};
use crate::channel::Channel;
use crate::packet::{Counts, put_lenenc_bytes, put_ok};
use crate::version::is_mariadb;
use crate::{CapabilityFlags, SqlError, StatusFlags, WireError};
use std::time::{Duration, Instant};

/// How long a client that sends garbage may take to read why it is refused.
const GOODBYE: Duration = Duration::from_millis(500);

/// Serves COM_CHANGE_USER: `argument` is what follows the command byte, `capabilities` and `nonce` are those of the login. Sends OK,
/// or as `login` does the ERR that is returned, and 1047 for what cannot be read, but for attributes 1045 as MySQL. Whatever the error, the connection ends
/// after it, as MySQL ends it.
pub fn change_user(
    channel: &mut Channel,
    argument: &[u8],
    capabilities: CapabilityFlags,
    nonce: [u8; NONCE],
    options: &ServerOptions,
    accounts: &dyn Accounts,
) -> Result<Login, WireError> {
    let response = match ClientResponse::parse_change_user(argument, capabilities) {
        Ok(response) => response,
        Err(Unreadable::Attributes(response)) if !is_mariadb(&options.server_version) => {
            let response = &response;
            let exchange = Exchange { channel, options, accounts, response, greeted: None, nonce };
            let error = exchange.access_denied(false);
            return Err(refuse(exchange.channel, error));
        }
        Err(_) => return Err(refuse(channel, SqlError::unknown_command())),
    };
    channel.set_deadline(Some(Instant::now() + options.timeout));
    let exchange = Exchange { channel, options, accounts, response: &response, greeted: None, nonce };
    let secret = decide(exchange)?;
    let login = admit(channel, accounts, response.into_login(secret, nonce))?;
    channel.set_deadline(None);
    Ok(login)
}

/// What the client proved. Otherwise it is told the error that is returned.
pub(super) fn decide(mut exchange: Exchange<'_>) -> Result<Secret, WireError> {
    if let Some(charset) = impermissible_charset(exchange.response.collation) {
        let text = format!("Variable 'character_set_client' can't be set to the value of '{charset}'");
        return Err(refuse(exchange.channel, SqlError::new(1231, "42000", text)));
    }
    match exchange.run() {
        Ok(Verdict::Proved(secret)) => Ok(secret),
        Ok(Verdict::Refused { used_password }) => {
            let error = exchange.access_denied(used_password);
            Err(refuse(exchange.channel, error))
        }
        Err(error) => Err(refuse_garbage(exchange.channel, error)),
    }
}

/// Sends OK, unless there is another reason to send an error.
pub(super) fn admit(
    channel: &mut Channel,
    accounts: &dyn Accounts,
    login: Login,
) -> Result<Login, WireError> {
    let schema = login.database.as_ref().map_or(Ok(()), |_| accounts.check_schema(&login));
    if let Err(error) = schema.and_then(|()| accounts.admit(&login.user)) {
        return Err(refuse(channel, error));
    }
    channel.queue(&ok(&login));
    channel.flush()?;
    Ok(login)
}

/// The OK of a login, which tells clients that track the session the schema they have asked for.
fn ok(login: &Login) -> Vec<u8> {
    let mut status = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
    let mut tail = Vec::new();
    if login.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK)
        && let Some(schema) = &login.database
    {
        const SESSION_TRACK_SCHEMA: u8 = 1;
        status |= StatusFlags::SERVER_SESSION_STATE_CHANGED;
        let (mut name, mut entry) = (Vec::new(), vec![SESSION_TRACK_SCHEMA]);
        put_lenenc_bytes(&mut name, schema.as_bytes());
        put_lenenc_bytes(&mut entry, &name);
        put_lenenc_bytes(&mut tail, b"");
        put_lenenc_bytes(&mut tail, &entry);
    }
    let mut payload = Vec::new();
    put_ok(&mut payload, 0x00, Counts::default(), status, 0);
    payload.extend_from_slice(&tail);
    payload
}

/// Ends a login that is not the protocol: error 1043, or nothing to a client that has gone or says nothing.
pub(super) fn refuse_garbage(channel: &mut Channel, error: WireError) -> WireError {
    if matches!(error, WireError::Malformed(_) | WireError::Damaged(_) | WireError::TooLarge { .. }) {
        // The reason is more use to the caller than what the client was told.
        let _ = refuse(channel, SqlError::new(1043, "08S01", "Bad handshake"));
        channel.close_gently(GOODBYE);
    }
    error
}

fn refuse(channel: &mut Channel, error: SqlError) -> WireError {
    channel.queue(&error.to_payload());
    match channel.flush() {
        Ok(()) => WireError::Sql(error),
        Err(failed) => failed,
    }
}
