/** Encrypts responses for storage outside the process, and decrypts them. */
import type { KeptResponse } from "./recent_responses.ts";
import { seal, unseal } from "./seal.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** Purpose of the encryption, with the version of the format. */
const PURPOSE = "sluice recall 1";
/** Size of the field with the length of the header, in bytes. */
const LENGTH_BYTES = 4;

/** Encrypts a response for the Redis key under which it is stored. */
export async function sealResponse(
  secret: string,
  { key: place, response }: { key: string; response: KeptResponse },
): Promise<Uint8Array<ArrayBuffer>> {
  const { input, output, ...others } = response;
  const header = encoder.encode(JSON.stringify({ ...others, inputBytes: input.byteLength }));
  const bytes = new Uint8Array(LENGTH_BYTES + header.length + input.length + output.length);
  new DataView(bytes.buffer).setUint32(0, header.length);
  bytes.set(header, LENGTH_BYTES);
  bytes.set(input, LENGTH_BYTES + header.length);
  bytes.set(output, LENGTH_BYTES + header.length + input.length);
  return await seal(secret, { purpose: PURPOSE, place, bytes });
}

/** Decrypts a result of `sealResponse`. Returns `undefined` for another secret or Redis key. */
export async function openResponse(
  secret: string,
  { key: place, sealed }: { key: string; sealed: Uint8Array<ArrayBuffer> },
): Promise<KeptResponse | undefined> {
  const bytes = await unseal(secret, { purpose: PURPOSE, place, sealed });
  if (bytes === undefined) return undefined;
  const start = LENGTH_BYTES + new DataView(bytes.buffer).getUint32(0);
  // The text is authentic, since only the gateway encrypts with this key, so its shape need not be checked.
  const { inputBytes, ...others } = JSON.parse(decoder.decode(bytes.subarray(LENGTH_BYTES, start)));
  const middle = start + inputBytes;
  return { ...others, input: bytes.slice(start, middle), output: bytes.slice(middle) };
}
