/** JSON answers that a client can ask about again for the price of a header. */
import { eTag, ifNoneMatch } from "@std/http/etag";
import { type Json, writeJson } from "../json/mod.ts";
import { JsonAnswer } from "./json_response.ts";

/** The body as JSON with an entity tag, or 304 where the client has it already. */
export async function jsonWithEtag(request: Request, body: Json): Promise<Response> {
  const text = writeJson(body);
  const etag = await eTag(text);
  const headers: Record<string, string> = { "cache-control": "private, no-cache", ...(etag !== undefined && { etag }) };
  if (!ifNoneMatch(request.headers.get("if-none-match"), etag)) return new Response(null, { status: 304, headers });
  const answer = new JsonAnswer(text, { headers });
  answer.headers.set("content-length", String(answer.byteLength));
  return answer;
}
