//! Rows in the binary format of `COPY … FROM STDIN`: the fastest way in, for new tasks.

use bytes::{BufMut, Bytes, BytesMut};

use super::text::encode;

/// Rows being gathered.
pub(super) struct Rows {
    buffer: BytesMut,
    fields: i16,
    /// How many there are.
    pub(super) count: u64,
}

impl Rows {
    /// For rows of so many columns.
    pub(super) fn new(fields: i16) -> Rows {
        let mut buffer = BytesMut::with_capacity(64 << 10);
        buffer.put_slice(b"PGCOPY\n\xff\r\n\0");
        // Flags, and the length of a header extension.
        buffer.put_i32(0);
        buffer.put_i32(0);
        Rows { buffer, fields, count: 0 }
    }

    /// Begins a row, whose columns follow in order.
    pub(super) fn row(&mut self) -> &mut Rows {
        self.buffer.put_i16(self.fields);
        self.count += 1;
        self
    }

    /// A column of type `bigint`.
    pub(super) fn i64(&mut self, value: i64) -> &mut Rows {
        self.buffer.put_i32(8);
        self.buffer.put_i64(value);
        self
    }

    /// The same, or null.
    pub(super) fn maybe_i64(&mut self, value: Option<i64>) -> &mut Rows {
        match value {
            Some(value) => self.i64(value),
            None => self.null(),
        }
    }

    /// A column of type `integer` that holds an unsigned number.
    pub(super) fn u32(&mut self, value: u32) -> &mut Rows {
        self.buffer.put_i32(4);
        self.buffer.put_u32(value);
        self
    }

    /// A column of type `smallint`.
    pub(super) fn i16(&mut self, value: i16) -> &mut Rows {
        self.buffer.put_i32(2);
        self.buffer.put_i16(value);
        self
    }

    /// A column of type `boolean`.
    pub(super) fn bool(&mut self, value: bool) -> &mut Rows {
        self.buffer.put_i32(1);
        self.buffer.put_u8(u8::from(value));
        self
    }

    /// A column of type `uuid`.
    pub(super) fn uuid(&mut self, value: u128) -> &mut Rows {
        self.buffer.put_i32(16);
        self.buffer.put_u128(value);
        self
    }

    /// The same, or null.
    pub(super) fn maybe_uuid(&mut self, value: Option<u128>) -> &mut Rows {
        match value {
            Some(value) => self.uuid(value),
            None => self.null(),
        }
    }

    /// A column of type `text`. One longer than 2 GiB, which the server could not hold, makes the
    /// server refuse the rows.
    pub(super) fn text(&mut self, value: &str) -> &mut Rows {
        let value = encode(value);
        self.buffer.put_i32(i32::try_from(value.len()).unwrap_or(i32::MAX));
        self.buffer.put_slice(value.as_bytes());
        self
    }

    /// The same, or null.
    pub(super) fn maybe_text(&mut self, value: Option<&str>) -> &mut Rows {
        match value {
            Some(value) => self.text(value),
            None => self.null(),
        }
    }

    fn null(&mut self) -> &mut Rows {
        self.buffer.put_i32(-1);
        self
    }

    /// All of them.
    pub(super) fn finish(mut self) -> Bytes {
        self.buffer.put_i16(-1);
        self.buffer.freeze()
    }
}
