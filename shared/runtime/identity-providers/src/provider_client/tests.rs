//! Tests.

use super::*;
use crate::configuration::Configuration;
use crate::machines::machine_rule;

/// Fails to compile if futures of this crate cannot be awaited in handlers.
#[expect(dead_code, reason = "it only has to compile")]
fn futures_can_be_sent(
    client: &ProviderClient,
    (configuration, issuers): (&Configuration, &Issuers),
    (exchange, token, person): (&CodeExchange<'_>, &RefreshToken, &Person),
) {
    fn sent<T: Send>(_: T) {}
    sent(client.exchange_code(exchange));
    sent(client.refresh(token, person));
    sent(client.end_session_url(""));
    sent(client.check());
    sent(machine_rule(configuration, issuers, ""));
}
