/** A receiver of alerts on a port of its own. */
import { createHmac } from "node:crypto";
import { assertEquals, assertMatch } from "@std/assert";
import type { AlertBody } from "../../lib/alerts/event.ts";

/** A webhook as it arrived. */
export interface ReceivedWebhook {
  headers: Headers;
  text: string;
  body: AlertBody;
}

/** A receiver. */
export interface WebhookReceiver extends AsyncDisposable {
  /** Its address, with a path as Slack has it. */
  readonly url: string;
  readonly received: ReceivedWebhook[];
  /** Answers the webhooks from now on; at first with 204. */
  answer: (webhook: ReceivedWebhook) => Response | Promise<Response>;
}

/** Starts a receiver. */
export function startReceiver(): WebhookReceiver {
  const received: ReceivedWebhook[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const text = await request.text();
    const webhook = { headers: request.headers, text, body: JSON.parse(text) };
    received.push(webhook);
    return await receiver.answer(webhook);
  });
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${server.addr.port}/services/T0000/B0000/long-secret-path`,
    received,
    answer: () => new Response(null, { status: 204 }),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
  return receiver;
}

/** Checks the signature of a webhook as the documentation shows it, and that it is of the last minute. */
export function assertSigned({ headers, text }: ReceivedWebhook, secret: string): void {
  const signature = headers.get("sluice-signature") ?? "";
  assertMatch(signature, /^t=\d+,v1=[0-9a-f]{64}$/);
  const [, time = "", mac = ""] = /^t=(\d+),v1=([0-9a-f]+)$/.exec(signature) ?? [];
  assertEquals(mac, createHmac("sha256", secret).update(`${time}.${text}`).digest("hex"));
  assertEquals(Math.abs(Date.now() / 1000 - Number(time)) < 60, true);
}
