//! Eight bytes looked at together, as one number.

/// The high bit of each byte.
pub(crate) const HIGH: u64 = repeated(0x80);

/// A word of this byte alone.
pub(crate) const fn repeated(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}
