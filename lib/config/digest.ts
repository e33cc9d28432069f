/** Compares configurations and parts of them, including the secrets that they contain. */
import { createHash } from "node:crypto";
import { Secret } from "../secret.ts";

/** Returns the SHA-256 of a configuration or of a part of one, hexadecimal. It covers the values of secrets. */
export function configDigest(config: unknown): string {
  const text = JSON.stringify(config, function (this: Record<string, unknown>, name, value: unknown) {
    // `value` is the result of `toJSON`, which hides a secret; `this[name]` is the secret itself.
    const original = this[name];
    return original instanceof Secret ? createHash("sha256").update(original.reveal()).digest("hex") : value;
  });
  return createHash("sha256").update(text ?? "").digest("hex");
}
