/** Health: is the process alive, and can it answer. */
import type { Gateway } from "../gateway.ts";
import { jsonResponse } from "./serve.ts";

/** 200 while the process runs. */
export function alive(): Response {
  return jsonResponse({ status: "ok" });
}

/** 200 while the gateway can answer requests: its key store must answer. 503 where it does not. */
export async function ready(gateway: Gateway): Promise<Response> {
  try {
    await gateway.keys.check();
    return jsonResponse({ status: "ok" });
  } catch {
    return new Response(JSON.stringify({ status: "unavailable" }), {
      status: 503,
      headers: { "content-type": "application/json" },
    });
  }
}
