/**
 * Builds a `FormData` from the parts of an upload. Files become blobs piece by piece, so that no file is in memory
 * twice.
 */
import { GatewayError } from "../errors.ts";
import { firstBadByte } from "../text.ts";
import type { PartSink } from "./multipart_parser.ts";
import type { PartHead } from "./part_head.ts";

/** Limits on the parts of a form. */
export interface PartLimits {
  /** Largest file, in bytes. */
  fileBytes: number;
  /** Largest text field, in bytes. */
  textBytes: number;
  /** Allowed field names; absent: any name. */
  names?: ReadonlySet<string>;
}

/** Builds a form from parser events. */
export interface FormBuilder extends PartSink {
  readonly form: FormData;
}

const FIRST_BUFFER_BYTES = 16 * 1024;

/** Bytes of a file that are buffered before they become a blob. */
const PIECE_BYTES = 1024 * 1024;

/** Creates a builder with an empty form. Its methods throw `invalid` and `too_large`. */
export function createFormBuilder({ fileBytes, textBytes, names }: PartLimits): FormBuilder {
  const form = new FormData();
  let head: PartHead = { name: "", type: "" };
  /** Bytes of the part so far. */
  let size = 0;
  let buffer = new Uint8Array(FIRST_BUFFER_BYTES);
  /** Bytes in the buffer. */
  let used = 0;
  let pieces: Blob[] = [];

  function collect(bytes: Uint8Array): void {
    if (used + bytes.length > buffer.length) {
      const grown = new Uint8Array(Math.max(used + bytes.length, buffer.length * 2));
      grown.set(buffer.subarray(0, used));
      buffer = grown;
    }
    buffer.set(bytes, used);
    used += bytes.length;
  }

  function flush(): void {
    if (used > 0) pieces.push(new Blob([buffer.subarray(0, used)]));
    used = 0;
  }

  return {
    form,
    begin(next) {
      if (names !== undefined && !names.has(next.name)) {
        throw new GatewayError("invalid", `Unknown field "${next.name}"`, {
          param: next.name,
        });
      }
      head = next;
      size = 0;
      pieces = [];
    },
    data(bytes) {
      const isFile = head.filename !== undefined;
      const limit = isFile ? fileBytes : textBytes;
      size += bytes.length;
      if (size > limit) throw tooLarge(head, limit);
      for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
        if (isFile && used >= PIECE_BYTES) flush();
        collect(bytes.subarray(start, start + PIECE_BYTES));
      }
    },
    end() {
      const { name, filename, type } = head;
      if (filename === undefined) {
        form.append(name, decode(buffer.subarray(0, used), name));
        used = 0;
      } else {
        flush();
        form.append(name, new File(pieces, filename, { type: type === "" ? "application/octet-stream" : type }));
      }
    },
  };
}

function decode(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new GatewayError(
      "invalid",
      `Cannot read field "${name}": byte ${firstBadByte(bytes)} is not UTF-8; a file needs a filename`,
      { param: name, cause },
    );
  }
}

function tooLarge({ name, filename }: PartHead, limitBytes: number): GatewayError {
  const hint = filename === undefined ? "; a file needs a filename" : "";
  return new GatewayError("too_large", `Cannot read field "${name}": it has more than ${limitBytes} bytes${hint}`, {
    param: name,
    headers: { connection: "close" },
  });
}
