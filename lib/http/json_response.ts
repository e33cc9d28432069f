/** Answers of JSON. */
import { type Json, writeJson } from "../json.ts";

/** What a JSON answer has beside its body. */
export interface JsonOptions {
  /** Absent: 200. */
  status?: number;
  headers?: Readonly<Record<string, string>>;
}

/** A JSON text as an answer. Its length is told, so that `HEAD`, whose body is dropped, tells it too. */
export function jsonText(
  text: string | Uint8Array<ArrayBuffer>,
  { status = 200, headers = {} }: JsonOptions = {},
): Response {
  const body = typeof text === "string" ? new TextEncoder().encode(text) : text;
  return new Response(body, {
    status,
    headers: { ...headers, "content-type": "application/json", "content-length": String(body.byteLength) },
  });
}

/** A value as a JSON answer. */
export function jsonResponse(body: Json, headers: Readonly<Record<string, string>> = {}): Response {
  return jsonText(writeJson(body), { headers });
}
