/** One hash per request: what it asks for counts, not how the client wrote it. */
import { isObject, type Json, writeJson } from "../json/json.ts";
import type { ImageRequest, InputImage } from "./types.ts";

/** SHA-256 of a request, hexadecimal. Boundaries, filenames and the order of members and fields do not matter. */
export async function hashRequest({ images, mask, rest, ...request }: ImageRequest): Promise<string> {
  const said: Json = [
    sortMembers({ ...request, size: { ...request.size } }),
    sortMembers(rest),
    await Promise.all(images.map(hashImage)),
    mask === undefined ? null : await hashImage(mask),
  ];
  return await hashBytes(Uint8Array.from(new TextEncoder().encode(writeJson(said))));
}

function hashImage({ bytes }: InputImage): Promise<string> {
  return hashBytes(bytes);
}

async function hashBytes(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The same value with the members of all objects in one order. */
function sortMembers(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (!isObject(value)) return value;
  const names = Object.keys(value).filter((name) => value[name] !== undefined).sort();
  return Object.fromEntries(names.map((name) => [name, sortMembers(value[name] ?? null)]));
}
