//! The digest by which a Redis server knows a script (FIPS 180-4). It protects nothing.

/// The SHA-1 digest of a text as 40 lower-case hexadecimal digits, as `SCRIPT LOAD` and `redis.sha1hex` answer it.
pub(super) fn sha1_hex(text: &str) -> String {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded(text).as_chunks::<64>().0 {
        state = mixed(state, block);
    }
    state.map(|word| format!("{word:08x}")).concat()
}

/// The bytes of the text, a one bit, zeros up to the end of a block, and in its last eight bytes the number of bits.
fn padded(text: &str) -> Vec<u8> {
    let bits = text.len() as u64 * 8;
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0x80);
    bytes.resize((bytes.len() + 8).next_multiple_of(64) - 8, 0);
    bytes.extend(bits.to_be_bytes());
    bytes
}

#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn mixed(state: [u32; 5], block: &[u8; 64]) -> [u32; 5] {
    let mut words = [0; 80];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..80 {
        words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = state;
    for (at, word) in words.into_iter().enumerate() {
        let (choice, constant) = match at / 20 {
            0 => (b & c | !b & d, 0x5a82_7999_u32),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = [a.rotate_left(5), choice, e, constant, word].into_iter().fold(0, u32::wrapping_add);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    let [old_a, old_b, old_c, old_d, old_e] = state;
    [old_a.wrapping_add(a), old_b.wrapping_add(b), old_c.wrapping_add(c), old_d.wrapping_add(d), old_e.wrapping_add(e)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_digest_of_the_standard() {
        let known = [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
            ("return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"),
        ];
        for (text, digest) in known {
            assert_eq!(sha1_hex(text), digest, "{text}");
        }
        assert_eq!(sha1_hex(&"a".repeat(1_000_000)), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }

    /// Around the ends of blocks, where the padding grows by a block.
    #[test]
    fn it_is_right_for_texts_of_every_length() {
        let known = [
            (54, "330c25c645d5f79f25fdc5502f1f88ff6cfe406a"),
            (56, "023f3e0f54cf765cf61c177b48b4c3eb567bcb2f"),
            (57, "1059659989954d76ece98714e2715fefbd60ddce"),
            (60, "0ea9da6925b61dfb8204d66a08ab58edf92abf02"),
            (63, "c6efe620f4c04e5fd85a89f0d90672ad04fba36e"),
            (65, "b8a27b43641560081d61e2c6cd3866b09f2ad103"),
            (66, "ca7e4a2bfc4b804cbca5d0bfb4c53597c1494455"),
            (119, "e632222a478292a73e2b2e469c19f7707883eb06"),
            (120, "1d92639a92b2066f64c81af4be5d03edb7e34915"),
            (123, "3b5eccecc0d7ba6e1cec8564bfbe68003cba7a97"),
            (126, "bcd7909e006048146db8bd22c1172b21d7c2da37"),
            (129, "f3cf13d94152f8c0b7b1e1731ca1c60f6e0ac1d3"),
        ];
        for (length, digest) in known {
            assert_eq!(sha1_hex(&"é~".repeat(50)[..length]), digest, "{length} bytes");
        }
    }
}
