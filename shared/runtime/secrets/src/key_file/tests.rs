use std::path::PathBuf;

use super::*;

fn written(directory: &tempfile::TempDir, content: &[u8], mode: u32) -> PathBuf {
    let path = directory.path().join("key");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn a_created_file_is_read_and_belongs_to_its_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let created = KeyFile::create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let read = KeyFile::read(&path).unwrap();
    assert!(read.key == created.key && read.id == created.id);
    assert!(read.key != KeyFile::create(&directory.path().join("other")).unwrap().key);
    assert_eq!(format!("{read:?}"), "KeyFile(…)");
}

#[test]
fn an_existing_file_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = written(&directory, b"mine", 0o600);
    assert!(matches!(KeyFile::create(&path), Err(KeyFileError::Io { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

#[test]
fn a_file_that_others_may_access_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let content = STANDARD.encode([7; KEY_BYTES]);
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o666] {
        let path = written(&directory, content.as_bytes(), mode);
        let error = KeyFile::read(&path).unwrap_err();
        assert!(matches!(error, KeyFileError::Permissions { .. }), "{mode:o}: {error}");
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    for mode in [0o600, 0o400] {
        let path = written(&directory, content.as_bytes(), mode);
        assert_eq!(*KeyFile::read(&path).unwrap().key, [7; KEY_BYTES], "{mode:o}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_file_without_a_key_is_refused_without_repeating_its_content() {
    let directory = tempfile::tempdir().unwrap();
    let key = STANDARD.encode([7; KEY_BYTES]);
    let long = [key.as_bytes(), &[b' '; 300]].concat();
    let short = STANDARD.encode([7; KEY_BYTES - 1]);
    let longer = STANDARD.encode([7; KEY_BYTES + 1]);
    let contents: [&[u8]; 6] = [b"", b"\xff\xfe", b"not base64!", short.as_bytes(), longer.as_bytes(), &long];
    for content in contents {
        let path = written(&directory, content, 0o600);
        let error = KeyFile::read(&path).unwrap_err();
        assert!(matches!(error, KeyFileError::Malformed { .. }), "{content:?}: {error}");
        assert!(!error.to_string().contains("not base64!"), "{error}");
    }
    let padded = written(&directory, format!("\n {key}\r\n").as_bytes(), 0o600);
    assert!(KeyFile::read(&padded).is_ok());
    assert!(matches!(KeyFile::read(directory.path()), Err(KeyFileError::Io { .. })));
    assert!(matches!(KeyFile::read(&directory.path().join("absent")), Err(KeyFileError::Io { .. })));
}
