//! Tests of refused folders and files, and of a secret that several processes create at the same time.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn reason(path: &Path) -> Reason {
    Folder::open(path).unwrap_err().reason
}

#[test]
fn the_folders_above_are_examined() {
    let temporary = Temporary::new("broadloom-above").unwrap();
    let (above, folder) = (temporary.path().join("above"), temporary.path().join("above/own"));
    assert_eq!(Folder::open(&folder).unwrap().map(drop), None);
    drop(Folder::create(&folder).unwrap());
    let modes = [&above, &folder].map(|path| fs::metadata(path).unwrap().permissions().mode() & 0o777);
    assert_eq!(modes, [0o700, 0o700]);
    for mode in [0o770, 0o777, 0o702] {
        chmod(&above, mode);
        assert_eq!(Folder::open(&folder).unwrap_err(), Refusal::new(&above, Reason::Writable(mode)));
        assert_eq!(Folder::create(&folder.join("more")).unwrap_err().path, above);
    }
    // With the sticky bit, others cannot replace this user's files.
    chmod(&above, 0o1777);
    assert!(Folder::open(&folder).unwrap().is_some());
    chmod(&folder, 0o1777);
    assert_eq!(reason(&folder), Reason::Writable(0o1777));
    chmod(&folder, 0o755);
    assert!(Folder::open(&folder).unwrap().is_some());
    fs::write(temporary.path().join("file"), "").unwrap();
    assert_eq!(reason(&temporary.path().join("file")), Reason::Kind(NO_FOLDER));
    assert_eq!(reason(&temporary.path().join("file/own")), Reason::Kind(NO_FOLDER));
    if user() == 0 {
        chown(&above, Some(54_321), None).unwrap();
        assert_eq!(Folder::open(&folder).unwrap_err(), Refusal::new(&above, Reason::Owner(54_321)));
        chown(&above, Some(0), None).unwrap();
        chown(&folder, Some(54_321), None).unwrap();
        assert_eq!(Folder::open(&folder).unwrap_err(), Refusal::new(&folder, Reason::Owner(54_321)));
    } else {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: only root can make folders of another user");
    }
}

#[test]
fn links_above_are_followed_when_they_are_ours() {
    let temporary = Temporary::new("broadloom-links").unwrap();
    let at = |name: &str| temporary.path().join(name);
    drop(Folder::create(&at("real/own")).unwrap());
    symlink(at("real"), at("absolute")).unwrap();
    symlink("real/../real/.", at("relative")).unwrap();
    for link in ["absolute", "relative"] {
        let folder = Folder::open(&at(link).join("own")).unwrap().unwrap();
        assert_eq!(folder.path(), at("real/own"));
        assert_eq!(reason(&at(link)), Reason::Link);
    }
    symlink("loop", at("loop")).unwrap();
    assert!(matches!(reason(&at("loop/own")), Reason::System(_)));
    // A link is not followed to a folder that others can write to.
    chmod(&at("real"), 0o777);
    assert_eq!(Folder::open(&at("absolute/own")).unwrap_err(), Refusal::new(&at("real"), Reason::Writable(0o777)));
    if user() == 0 {
        chmod(&at("real"), 0o700);
        std::os::unix::fs::lchown(at("absolute"), Some(54_321), None).unwrap();
        assert_eq!(Folder::open(&at("absolute/own")).unwrap_err(), Refusal::new(&at("absolute"), Reason::Owner(54_321)));
    }
}

/// The examined file is the one that is read: after opening, the path no longer matters.
#[test]
fn a_file_that_is_replaced_after_opening_is_the_one_that_was_opened() {
    let temporary = Temporary::new("broadloom-replaced").unwrap();
    let folder = Folder::create(&temporary.path().join("own")).unwrap();
    folder.write("entry", b"ours").unwrap();
    let opened = folder.file("entry").unwrap().unwrap();
    let path = folder.path().join("entry");
    fs::remove_file(&path).unwrap();
    symlink("/etc/hostname", &path).unwrap();
    assert_eq!(folder.contents("entry", &opened, 100).unwrap(), b"ours");
    // A folder that is replaced after opening makes no difference either.
    folder.write("entry", b"ours").unwrap();
    fs::rename(folder.path(), temporary.path().join("moved")).unwrap();
    fs::create_dir(folder.path()).unwrap();
    fs::write(&path, "theirs").unwrap();
    assert_eq!(folder.read("entry", 100).unwrap().unwrap(), b"ours");
    // Reading a growing file stops at the limit.
    let path = temporary.path().join("moved/entry");
    let opened = folder.file("entry").unwrap().unwrap();
    fs::write(&path, "longer than it was").unwrap();
    assert_eq!(folder.contents("entry", &opened, 4).unwrap_err().reason, Reason::Size { bytes: 18, most: 4 });
}

#[test]
fn a_known_folder_is_examined_again_when_it_is_another() {
    let temporary = Temporary::new("broadloom-known").unwrap();
    let path = temporary.path().join("own");
    let known = KnownFolder::new(path.clone());
    assert!(known.open().unwrap().is_none());
    known.create().unwrap().write("entry", b"ours").unwrap();
    assert!(known.open().unwrap().is_some());
    chmod(&path, 0o777);
    assert_eq!(known.open().unwrap_err().reason, Reason::Writable(0o777));
    chmod(&path, 0o700);
    fs::rename(&path, temporary.path().join("moved")).unwrap();
    symlink(temporary.path().join("moved"), &path).unwrap();
    assert_eq!(known.open().unwrap_err().reason, Reason::Link);
    fs::remove_file(&path).unwrap();
    assert!(known.open().unwrap().is_none());
    chmod(temporary.path(), 0o777);
    assert_eq!(known.create().unwrap_err().path, temporary.path());
}

#[test]
fn one_secret_is_made_by_many() {
    let temporary = Temporary::new("broadloom-secret").unwrap();
    let path = temporary.path().join("state");
    let secrets: Vec<Secret> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Secret::at(&path).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    assert_ne!(secrets[0], Secret::of_byte(0));
    assert_eq!(Folder::open(&path).unwrap().unwrap().names().unwrap(), ["secret"]);
    let [first, second] = [b"a".as_slice(), b"ab"].map(|part| secrets[0].tag(&[part, b"bc"]));
    assert_ne!(first, second);
    assert_ne!(secrets[0].tag(&[b"a"]), Secret::of_byte(0).tag(&[b"a"]));
    assert_ne!(secrets[0].tag(&[b"ab", b"c"]), secrets[0].tag(&[b"a", b"bc"]));
    assert_eq!(format!("{:?}", secrets[0]), "Secret");
    if user() == 0 {
        chown(path.join("secret"), Some(54_321), None).unwrap();
        assert_eq!(Secret::at(&path).unwrap_err().reason, Reason::Owner(54_321));
    }
}

#[test]
fn temporary_folders_are_new_and_private() {
    let first = Temporary::new("broadloom-temporary").unwrap();
    let second = Temporary::within(first.path(), "inner").unwrap();
    assert_eq!(fs::metadata(second.path()).unwrap().permissions().mode() & 0o7777, 0o700);
    let path = first.path().to_owned();
    drop(second);
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    chmod(&path, 0o777);
    assert_eq!(Temporary::within(&path, "inner").unwrap_err().path, path);
    drop(first);
    assert!(!path.exists());
}
