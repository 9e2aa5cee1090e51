//! What a file is that the system refuses to execute.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Processors by the number that ELF has for them (System V ABI, `e_machine`), as people call them.
const ELF_MACHINES: [(u16, &str); 8] = [
    (3, "x86"),
    (8, "MIPS"),
    (21, "PowerPC"),
    (22, "IBM Z"),
    (40, "ARM"),
    (62, "x86-64"),
    (183, "ARM64"),
    (243, "RISC-V"),
];

/// What is wrong with a file whose format the system does not know, to go on in a sentence that has named it.
pub(super) fn fault(program: &Path) -> String {
    let mut head = Vec::new();
    let read = File::open(program).and_then(|file| file.take(20).read_to_end(&mut head));
    match head.as_slice() {
        _ if read.is_err() => "has a format that this system does not execute".to_owned(),
        [] => "is an empty file".to_owned(),
        [0x7f, b'E', b'L', b'F', _, order, ..] if head.len() == 20 => {
            let machine = [head[18], head[19]];
            let machine = if *order == 2 { u16::from_be_bytes(machine) } else { u16::from_le_bytes(machine) };
            let name = ELF_MACHINES.iter().find(|(number, _)| *number == machine).map(|(_, name)| *name);
            match name {
                Some(name) => format!("was built for another processor or system ({name}, Linux or Unix)"),
                None => "was built for another processor".to_owned(),
            }
        }
        [b'M', b'Z', ..] => "is a program for Windows".to_owned(),
        // Thin ones of both byte orders, and those for several processors, whose number is that of Java classes, too.
        [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..]
        | [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..]
        | [0xca, 0xfe, 0xba, 0xbe, ..] => {
            "is a program for macOS, for another processor, or no program".to_owned()
        }
        [b'#', b'!', ..] => "is a script whose first line names no interpreter that can be used".to_owned(),
        _ => "is no program of this system and no script: it has no #! line that names an interpreter"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    fn fault_of(name: &str, bytes: &[u8]) -> String {
        let file = std::env::temp_dir().join(format!("workflow-mcp-format-{}-{name}", std::process::id()));
        std::fs::write(&file, bytes).unwrap();
        let fault = fault(&file);
        std::fs::remove_file(file).unwrap();
        fault
    }

    #[test]
    fn the_first_bytes_say_what_a_file_is() {
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(18, 0);
        let of_machine = |machine: &[u8]| [elf.as_slice(), machine].concat();
        assert!(fault_of("arm64", &of_machine(&[183, 0])).contains("(ARM64, "));
        assert_eq!(fault_of("unknown", &of_machine(&[255, 255])), "was built for another processor");
        let mut big_endian = of_machine(&[0, 22]);
        big_endian[5] = 2;
        assert!(fault_of("ibm-z", &big_endian).contains("(IBM Z, "));
        assert_eq!(fault_of("windows", b"MZ\x90\0"), "is a program for Windows");
        assert!(fault_of("macos", b"\xcf\xfa\xed\xfe").starts_with("is a program for macOS"));
        assert!(fault_of("text", b"echo hello\n").contains("no #! line"));
        assert_eq!(fault_of("empty", b""), "is an empty file");
        assert!(fault(Path::new("/nonexistent/file")).starts_with("has a format"));
    }
}
