/** Hashes image requests, independently of how the client wrote them. */
import { isObject, type Json, writeJson } from "../json/mod.ts";
import type { ImageRequest, InputImage } from "./types.ts";

/**
 * Returns the SHA-256 of a request in hexadecimal. Boundaries, file names and the order of members do not affect it.
 */
export async function hashRequest({ images, mask, rest, ...request }: ImageRequest): Promise<string> {
  const canonical: Json = [
    sortMembers({ ...request, size: { ...request.size } }),
    sortMembers(rest),
    await Promise.all(images.map(hashImage)),
    mask === undefined ? null : await hashImage(mask),
  ];
  return await hashBytes(Uint8Array.from(new TextEncoder().encode(writeJson(canonical))));
}

function hashImage({ bytes }: InputImage): Promise<string> {
  return hashBytes(bytes);
}

async function hashBytes(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function sortMembers(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (!isObject(value)) return value;
  const names = Object.keys(value).filter((name) => value[name] !== undefined).sort();
  return Object.fromEntries(names.map((name) => [name, sortMembers(value[name] ?? null)]));
}
