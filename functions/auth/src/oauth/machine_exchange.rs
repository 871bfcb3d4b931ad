//! Exchange of a machine's JWT for a token (RFC 8693).

use access::{AllowedActions, Restriction};
use identity_providers::{Configuration, MachineError, MachineRule, machine_rule};
use mlflow_api::{Error, ExperimentId, UserName};

use crate::oauth::form::Form;
use crate::oauth::oauth_error::{OauthErrorCode, OauthFailure, OauthResult};
use crate::oauth::token_response::{ACCESS_TOKEN, TokenResponse};
use crate::sign_on;
use crate::store::Store;

/// Types of tokens that can be exchanged. Both are JWTs.
const SUBJECT_TOKEN_TYPES: [&str; 2] =
    ["urn:ietf:params:oauth:token-type:jwt", "urn:ietf:params:oauth:token-type:id_token"];

/// Issues a token for the user that the matching rule names.
///
/// # Errors
/// `invalid_request` for parameters that are missing or not supported, `invalid_grant` if the JWT
/// is not valid or satisfies no rule, `temporarily_unavailable` if the keys of its issuer cannot be
/// fetched, and `unsupported_grant_type` if there are no rules.
pub(crate) async fn exchange(store: &Store, form: &Form) -> OauthResult<TokenResponse> {
    let token = form.required("subject_token")?;
    if !SUBJECT_TOKEN_TYPES.contains(&form.required("subject_token_type")?) {
        let [jwt, id_token] = SUBJECT_TOKEN_TYPES;
        let text = format!("The parameter subject_token_type must be {jwt} or {id_token}.");
        return Err(OauthErrorCode::InvalidRequest.because(text));
    }
    if form.get("requested_token_type").is_some_and(|requested| requested != ACCESS_TOKEN) {
        let text = format!("The parameter requested_token_type must be {ACCESS_TOKEN}.");
        return Err(OauthErrorCode::InvalidRequest.because(text));
    }
    if form.get("actor_token").is_some() {
        return Err(OauthErrorCode::InvalidRequest.because("The parameter actor_token is not supported."));
    }
    let configuration = sign_on::configuration(store).await?;
    let Some(configuration) = configuration.filter(|configuration| !configuration.machines.is_empty()) else {
        let text = "This server has no rules for the exchange of tokens.";
        return Err(OauthErrorCode::UnsupportedGrantType.because(text));
    };
    check_target(&configuration, form)?;
    let issuers = store.sign_on().issuers().map_err(Error::internal)?;
    let (rule, claims) = match machine_rule(&configuration, issuers, token).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(target: "audit", event = "token not exchanged", reason = %error);
            return Err(refusal(&error));
        }
    };
    let unusable = || {
        let text = format!("The user of the machine rule '{}' does not exist or is disabled.", rule.name);
        OauthErrorCode::InvalidGrant.because(text)
    };
    let user = UserName::named(&rule.user).ok_or_else(unusable)?;
    let issued = store.machine_token_create(&rule.name, &user, restriction(rule)?, rule.minutes).await?;
    let (secret, token) = issued.ok_or_else(unusable)?;
    let subject = claims.text("sub").unwrap_or_default();
    tracing::info!(target: "audit", event = "machine identified", rule = rule.name, ?subject, token = token.id);
    Ok(TokenResponse::new(&secret, &token).of_exchange())
}

/// Checks that the token is requested for this server, if the request names one.
fn check_target(configuration: &Configuration, form: &Form) -> OauthResult<()> {
    let is_this = |target: &str| configuration.origins.iter().any(|origin| origin == target.trim_end_matches('/'));
    match ["resource", "audience"].into_iter().filter_map(|name| form.get(name)).find(|target| !is_this(target)) {
        Some(target) => {
            Err(OauthErrorCode::InvalidTarget.because(format!("This server issues no tokens for {target}.")))
        }
        None => Ok(()),
    }
}

fn refusal(error: &MachineError) -> OauthFailure {
    let code = match error {
        MachineError::Unavailable(_) => OauthErrorCode::TemporarilyUnavailable,
        MachineError::Token(_) | MachineError::UnknownIssuer | MachineError::NoRule => OauthErrorCode::InvalidGrant,
    };
    let text = error.to_string();
    let mut characters = text.chars();
    let sentence = characters.next().map(|first| format!("{}{}.", first.to_uppercase(), characters.as_str()));
    code.because(sentence.unwrap_or_default())
}

/// Returns the restriction of the tokens of a rule.
fn restriction(rule: &MachineRule) -> OauthResult<Restriction> {
    let experiment = rule.experiment.as_deref().map(ExperimentId::parse).transpose();
    let actions = AllowedActions::from_name(&rule.only);
    // The configuration was validated when it was stored. If the restriction cannot be read anyway,
    // the exchange fails, instead of issuing a token without restriction.
    let invalid = || OauthFailure::Server(Error::internal(format!("the machine rule {} is not valid", rule.name)));
    Ok(Restriction { experiment: experiment.map_err(|_| invalid())?, actions: actions.ok_or_else(invalid)? })
}
