/** Encrypts what leaves the process: AES-256-GCM with a key that is derived from an API key by HKDF-SHA-256 (RFC 5869). */
import type { KeptResponse } from "./recent_responses.ts";

/** Bytes of the random nonce before the ciphertext. */
const NONCE_BYTES = 12;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Encrypts bytes. @param secret the API key @param place bound to the ciphertext: it opens nowhere else
 * @param purpose another purpose has another key
 */
export async function seal(
  secret: string,
  { purpose, place, bytes }: { purpose: string; place: string; bytes: Uint8Array<ArrayBuffer> },
): Promise<Uint8Array<ArrayBuffer>> {
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const algorithm = { name: "AES-GCM", iv: nonce, additionalData: encoder.encode(place) };
  const encrypted = await crypto.subtle.encrypt(algorithm, await deriveKey(secret, purpose), bytes);
  const sealed = new Uint8Array(NONCE_BYTES + encrypted.byteLength);
  sealed.set(nonce);
  sealed.set(new Uint8Array(encrypted), NONCE_BYTES);
  return sealed;
}

/** Decrypts bytes of `seal`; `undefined` for those of another secret, place or purpose, or that were changed. */
export async function unseal(
  secret: string,
  { purpose, place, sealed }: { purpose: string; place: string; sealed: Uint8Array<ArrayBuffer> },
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const iv = sealed.subarray(0, NONCE_BYTES);
  const algorithm = { name: "AES-GCM", iv, additionalData: encoder.encode(place) };
  const key = await deriveKey(secret, purpose);
  try {
    return new Uint8Array(await crypto.subtle.decrypt(algorithm, key, sealed.subarray(NONCE_BYTES)));
  } catch {
    return undefined;
  }
}

async function deriveKey(secret: string, purpose: string): Promise<CryptoKey> {
  const material = await crypto.subtle.importKey("raw", encoder.encode(secret), "HKDF", false, ["deriveKey"]);
  // API keys are random, so that they need no salt (RFC 5869, 3.1).
  const algorithm = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: encoder.encode(purpose) };
  return await crypto.subtle.deriveKey(algorithm, material, { name: "AES-GCM", length: 256 }, false, [
    "encrypt",
    "decrypt",
  ]);
}

const PURPOSE = "sluice recall 1";
/** Bytes of the length of the header, at the start. */
const LENGTH_BYTES = 4;

/** Encrypts a response for the place where it is kept. */
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

/** Decrypts a response of `sealResponse`; `undefined` where the secret or the place is another. */
export async function openResponse(
  secret: string,
  { key: place, sealed }: { key: string; sealed: Uint8Array<ArrayBuffer> },
): Promise<KeptResponse | undefined> {
  const bytes = await unseal(secret, { purpose: PURPOSE, place, sealed });
  if (bytes === undefined) return undefined;
  const start = LENGTH_BYTES + new DataView(bytes.buffer).getUint32(0);
  // The text is our own: nobody else can encrypt it.
  const { inputBytes, ...others } = JSON.parse(decoder.decode(bytes.subarray(LENGTH_BYTES, start)));
  const middle = start + inputBytes;
  return { ...others, input: bytes.slice(start, middle), output: bytes.slice(middle) };
}
