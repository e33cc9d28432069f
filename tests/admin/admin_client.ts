/** Requests to the admin side of a running gateway. */
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { ADMIN_KEY, type KeyedGateway, startKeyed } from "../support/keyed_gateway.ts";

/** A configuration with a separate admin listener. */
export const APART = { admin: { key: { env: "ADMIN_KEY" }, listen: { port: 1 } } };

/** An answer of the admin side. */
export interface Answer {
  status: number;
  headers: Headers;
  body: JsonObject;
}

/** Starts a gateway with an admin side of its own. */
export function startAdmin(): KeyedGateway {
  return startKeyed(APART);
}

/** Sends a request as the operator unless other headers are given: `POST /keys` is under `/admin/v1`. */
export async function ask(
  gateway: Pick<KeyedGateway, "adminUrl">,
  name: string,
  body?: Json,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const [method = "", path = ""] = name.split(" ");
  const response = await fetch(`${gateway.adminUrl}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_KEY}`, ...headers },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** The member `error` of an answer, as status, parameter and text. */
export function errorOf({ status, body }: Answer): [status: number, param: Json | undefined, message: string] {
  const error = body.error as JsonObject;
  return [status, error.param, String(error.message)];
}

/** Status that a client with this key gets for the model list. */
export async function statusOf({ url }: Pick<KeyedGateway, "url">, key: Json | undefined): Promise<number> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.body?.cancel();
  return response.status;
}
