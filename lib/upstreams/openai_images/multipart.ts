/** Writes forms with files as streams, so that uploads are not copied as a whole. */

/** A file of a form. */
export interface FormFile {
  name: string;
  filename: string;
  type: string;
  bytes: Uint8Array;
}

/** Fields of a form, written before its files. */
export interface Form {
  fields: readonly (readonly [name: string, value: string])[];
  files: readonly FormFile[];
}

/** Largest piece of the stream, in bytes. */
const PIECE_BYTES = 256 * 1024;

/** Returns the media type of a form's body. */
export function formType(boundary: string): string {
  return `multipart/form-data; boundary=${boundary}`;
}

/**
 * Returns the body of a form. Its pieces are views of the files' bytes.
 * @param boundary a text that does not occur in the form
 */
export function writeForm(form: Form, boundary: string): ReadableStream<Uint8Array> {
  return ReadableStream.from(formPieces(form, boundary));
}

/** Returns the length of a form's body, in bytes. */
export function formBytes(form: Form, boundary: string): number {
  let bytes = 0;
  for (const piece of formPieces(form, boundary)) bytes += piece.length;
  return bytes;
}

function* formPieces({ fields, files }: Form, boundary: string): Generator<Uint8Array> {
  const encoder = new TextEncoder();
  for (const [name, value] of fields) {
    yield encoder.encode(`--${boundary}\r\ncontent-disposition: form-data; name="${escape(name)}"\r\n\r\n${value}\r\n`);
  }
  for (const { name, filename, type, bytes } of files) {
    const disposition = `form-data; name="${escape(name)}"; filename="${escape(filename)}"`;
    yield encoder.encode(`--${boundary}\r\ncontent-disposition: ${disposition}\r\ncontent-type: ${type}\r\n\r\n`);
    for (let start = 0; start < bytes.length; start += PIECE_BYTES) yield bytes.subarray(start, start + PIECE_BYTES);
    yield encoder.encode("\r\n");
  }
  yield encoder.encode(`--${boundary}--\r\n`);
}

/** Escapes a name as browsers do. Names may come from clients, and must not end their quotes or their line. */
function escape(name: string): string {
  return name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}
