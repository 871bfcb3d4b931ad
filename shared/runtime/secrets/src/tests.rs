//! Sealing and opening, with a key file and with a simulated KMS.

mod fake_kms;

use proptest::prelude::{ProptestConfig, any, prop, proptest};

use self::fake_kms::FakeKms;
use crate::{KeyFile, KmsKey, MAX_SECRET_BYTES, SealedSecret, Secret, SecretContext, SecretError, SecretKeys};

const WEBHOOK: SecretContext<'static> = SecretContext { purpose: "webhook", workspace: "default", owner: "w1" };

fn secret() -> Secret {
    Secret::from("correct horse battery staple".to_owned())
}

fn key_file() -> SecretKeys {
    let directory = tempfile::tempdir().unwrap();
    SecretKeys::File(KeyFile::create(&directory.path().join("key")).unwrap())
}

fn kms(server: &FakeKms) -> SecretKeys {
    SecretKeys::Kms(KmsKey::over("arn:key", server.clone()))
}

/// Returns one key of each kind that can be configured.
fn configured() -> [SecretKeys; 2] {
    [key_file(), kms(&FakeKms::default())]
}

#[tokio::test]
async fn a_sealed_secret_can_be_opened() {
    for keys in configured() {
        assert!(keys.is_configured());
        for text in ["", "s", "correct horse", &"x".repeat(MAX_SECRET_BYTES)] {
            let sealed = keys.seal(&Secret::from(text.to_owned()), &WEBHOOK).await.unwrap();
            let stored = SealedSecret::from(sealed.clone().into_bytes());
            assert_eq!(stored, sealed);
            assert_eq!(keys.open(&stored, &WEBHOOK).await.unwrap().expose(), text.as_bytes());
        }
    }
}

#[tokio::test]
async fn equal_secrets_look_different() {
    for keys in configured() {
        let (one, two) = (keys.seal(&secret(), &WEBHOOK).await.unwrap(), keys.seal(&secret(), &WEBHOOK).await.unwrap());
        assert_ne!(one, two);
        let clear = secret();
        assert!(!one.as_bytes().windows(clear.expose().len()).any(|part| part == clear.expose()));
    }
}

#[tokio::test]
async fn a_secret_is_bound_to_its_entity() {
    let others = [
        SecretContext { owner: "w2", ..WEBHOOK },
        SecretContext { workspace: "other", ..WEBHOOK },
        SecretContext { purpose: "sign-in", ..WEBHOOK },
        SecretContext { workspace: "defaultw", owner: "1", ..WEBHOOK },
        SecretContext { owner: "", ..WEBHOOK },
    ];
    for keys in configured() {
        let sealed = keys.seal(&secret(), &WEBHOOK).await.unwrap();
        for other in others {
            assert_eq!(keys.open(&sealed, &other).await.unwrap_err(), SecretError::Tampered, "{other:?}");
        }
    }
}

#[tokio::test]
async fn every_flipped_bit_is_noticed() {
    for keys in configured() {
        let sealed = keys.seal(&secret(), &WEBHOOK).await.unwrap().into_bytes();
        for place in 0..sealed.len() {
            for bit in 0..8 {
                let mut changed = sealed.clone();
                changed[place] ^= 1 << bit;
                let error = keys.open(&SealedSecret::from(changed), &WEBHOOK).await.unwrap_err();
                // Changing the kind or the id of the key, which are in bytes 1 to 11, looks as if
                // the secret was sealed with another key.
                let names_other_key = matches!(error, SecretError::KeyUnavailable(_)) && (1..12).contains(&place);
                assert!(error == SecretError::Tampered || names_other_key, "{place} {bit}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn every_cut_and_every_addition_is_noticed() {
    for keys in configured() {
        let mut sealed = keys.seal(&secret(), &WEBHOOK).await.unwrap().into_bytes();
        for length in 0..sealed.len() {
            let cut = SealedSecret::from(sealed[..length].to_vec());
            assert_eq!(keys.open(&cut, &WEBHOOK).await.unwrap_err(), SecretError::Tampered, "{length}");
        }
        sealed.push(0);
        assert_eq!(keys.open(&SealedSecret::from(sealed), &WEBHOOK).await.unwrap_err(), SecretError::Tampered);
    }
}

/// The wrapped data key of one secret does not open the encrypted part of another one.
#[tokio::test]
async fn parts_of_two_secrets_are_no_secret() {
    for keys in configured() {
        let one = keys.seal(&secret(), &WEBHOOK).await.unwrap().into_bytes();
        let two = keys.seal(&secret(), &WEBHOOK).await.unwrap().into_bytes();
        let split = 4 + usize::from(u16::from_be_bytes([one[2], one[3]]));
        let mixed = [&one[..split], &two[split..]].concat();
        assert_eq!(keys.open(&SealedSecret::from(mixed), &WEBHOOK).await.unwrap_err(), SecretError::Tampered);
    }
}

#[tokio::test]
async fn a_secret_of_another_key_stays_closed() {
    let [file, of_kms] = configured();
    let (by_file, by_kms) =
        (file.seal(&secret(), &WEBHOOK).await.unwrap(), of_kms.seal(&secret(), &WEBHOOK).await.unwrap());
    for (keys, sealed) in [(key_file(), &by_file), (file, &by_kms), (of_kms, &by_file)] {
        let error = keys.open(sealed, &WEBHOOK).await.unwrap_err();
        assert!(matches!(error, SecretError::KeyUnavailable(_)), "{error}");
    }
}

#[tokio::test]
async fn nothing_is_sealed_without_a_key() {
    let none = SecretKeys::default();
    assert!(!none.is_configured());
    assert_eq!(none.seal(&secret(), &WEBHOOK).await.unwrap_err(), SecretError::NotConfigured);
    let sealed = key_file().seal(&secret(), &WEBHOOK).await.unwrap();
    assert_eq!(none.open(&sealed, &WEBHOOK).await.unwrap_err(), SecretError::NotConfigured);
}

#[tokio::test]
async fn a_long_secret_is_refused() {
    let server = FakeKms::default();
    for keys in [key_file(), kms(&server)] {
        let long = Secret::from(vec![b'x'; MAX_SECRET_BYTES + 1]);
        assert_eq!(keys.seal(&long, &WEBHOOK).await.unwrap_err(), SecretError::TooLong);
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn kms_authenticates_the_context_and_names_the_key() {
    let server = FakeKms::default();
    let keys = kms(&server);
    let sealed = keys.seal(&secret(), &WEBHOOK).await.unwrap();
    keys.open(&sealed, &WEBHOOK).await.unwrap();
    let context = r#""EncryptionContext":{"owner":"w1","purpose":"webhook","workspace":"default"}"#;
    let [(first, made), (second, opened)] = &server.requests()[..] else { panic!("two requests were expected") };
    assert_eq!((first.as_str(), second.as_str()), ("TrentService.GenerateDataKey", "TrentService.Decrypt"));
    assert_eq!(*made, format!(r#"{{"KeyId":"arn:key","KeySpec":"AES_256",{context}}}"#));
    assert!(opened.starts_with(r#"{"KeyId":"arn:key","CiphertextBlob":""#) && opened.contains(context), "{opened}");
}

#[tokio::test]
async fn errors_of_kms_are_not_taken_for_changed_secrets() {
    let server = FakeKms::default();
    let keys = kms(&server);
    let sealed = keys.seal(&secret(), &WEBHOOK).await.unwrap();
    for (status, code) in [
        (400, "AccessDeniedException"),
        (400, "DisabledException"),
        (400, "IncorrectKeyException"),
        (400, "KMSInvalidStateException"),
        (400, "NotFoundException"),
        (500, "KMSInternalException"),
    ] {
        server.fail(status, code);
        let opened = keys.open(&sealed, &WEBHOOK).await.unwrap_err();
        let made = keys.seal(&secret(), &WEBHOOK).await.unwrap_err();
        for error in [opened, made] {
            assert!(matches!(&error, SecretError::KeyUnavailable(cause) if cause.contains(code)), "{error}");
        }
    }
    server.respond_with("{}");
    assert!(matches!(keys.open(&sealed, &WEBHOOK).await.unwrap_err(), SecretError::KeyUnavailable(_)));
    server.respond_with(r#"{"Plaintext":"c2hvcnQ="}"#);
    assert!(matches!(keys.open(&sealed, &WEBHOOK).await.unwrap_err(), SecretError::KeyUnavailable(_)));
    server.recover();
    assert_eq!(keys.open(&sealed, &WEBHOOK).await.unwrap().expose(), secret().expose());
}

#[test]
fn nothing_that_is_printed_contains_a_secret() {
    assert_eq!(format!("{:?}", secret()), "Secret(…)");
    assert_eq!(format!("{:?}", SealedSecret::from(vec![1, 2])), "SealedSecret(2 bytes)");
    assert_eq!(format!("{:?}", key_file()), "File(KeyFile(…))");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Arbitrary bytes are never opened, and never cause a panic.
    #[test]
    fn arbitrary_bytes_are_refused(begin in prop::sample::select(vec![vec![], vec![1, 1], vec![1, 2], vec![1, 2, 0, 68]]), rest in prop::collection::vec(any::<u8>(), 0..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let sealed = SealedSecret::from([begin, rest].concat());
        assert!(runtime.block_on(key_file().open(&sealed, &WEBHOOK)).is_err());
    }
}
