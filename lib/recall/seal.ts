/** Encrypts data with AES-256-GCM, with a key that HKDF-SHA-256 (RFC 5869) derives from an API key. */

/** Bytes of the random nonce before the ciphertext. */
const NONCE_BYTES = 12;

const encoder = new TextEncoder();

/**
 * Encrypts bytes.
 * @param secret the API key
 * @param data `purpose`: each purpose has its own key; `place`: where the ciphertext is stored. The place is
 * authenticated, so that the ciphertext cannot be decrypted at another one
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

/** Decrypts a result of `seal`. Returns `undefined` for another secret, place or purpose, and for modified bytes. */
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
  // API keys are random, so no salt is needed (RFC 5869, 3.1).
  const algorithm = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: encoder.encode(purpose) };
  return await crypto.subtle.deriveKey(algorithm, material, { name: "AES-GCM", length: 256 }, false, [
    "encrypt",
    "decrypt",
  ]);
}
