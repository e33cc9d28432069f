/** Sends one signed alert to the webhook, over the same kinds of connections as upstream requests. */
import { createHmac } from "node:crypto";
import type { AlertsConfig, Config } from "../config.ts";
import { createAddressGuard } from "../upstreams/address_guard.ts";
import { createTransportSelector } from "../upstreams/select_transport.ts";
import type { AlertBody } from "./event.ts";

/** Timeout of one attempt, in milliseconds. */
export const SEND_MS = 10_000;

/** Longest response that is read, in bytes; the connection of a longer one is closed. */
const MAX_RESPONSE_BYTES = 64 * 1024;

/** The settings for sending alerts. */
export interface WebhookTarget {
  alerts: Pick<AlertsConfig, "webhook" | "secret" | "format">;
  private_networks?: Config["private_networks"];
}

/** Options of one attempt. */
export interface SendOptions {
  /** Unix time in milliseconds. */
  now: number;
  signal: AbortSignal;
  /** Timeout in milliseconds; absent: 10 seconds. */
  timeoutMs?: number;
}

/**
 * Sends an alert and returns the response status. Does not follow redirects.
 * @throws {GatewayError} if the receiver is unreachable, has a forbidden address, or does not answer in time
 */
export async function sendAlert(
  body: AlertBody,
  { alerts, private_networks }: WebhookTarget,
  { now, signal, timeoutMs = SEND_MS }: SendOptions,
): Promise<number> {
  const url = alerts.webhook.reveal();
  const text = alerts.format === "slack" ? slackText(body) : JSON.stringify(body);
  const transport = createTransportSelector({
    url,
    configured: "auto",
    guard: createAddressGuard(private_networks),
    onFallback: () => {},
  }).open({ idleConnections: 0 });
  try {
    const response = await transport.send({
      url,
      headers: {
        "content-type": "application/json",
        ...(alerts.secret !== undefined && {
          "sluice-signature": signatureOf(text, { secret: alerts.secret.reveal(), now }),
        }),
      },
      body: text,
      signal,
      limits: { connectMs: timeoutMs, firstByteMs: timeoutMs, idleMs: timeoutMs, totalMs: timeoutMs },
    });
    // Some receivers rely on their response being read.
    await response.text(MAX_RESPONSE_BYTES).catch(() => response.cancel());
    return response.status;
  } finally {
    transport.close();
  }
}

/**
 * Returns the signature of a body in the format of Stripe's webhooks: `t` is the time in Unix seconds, `v1` the
 * hexadecimal HMAC-SHA256 of the time, a dot and the body.
 * @param now Unix time in milliseconds
 */
export function signatureOf(body: string, { secret, now }: { secret: string; now: number }): string {
  const time = Math.floor(now / 1000);
  return `t=${time},v1=${createHmac("sha256", secret).update(`${time}.${body}`).digest("hex")}`;
}

/** Characters after which Mattermost reads a mention or a link. Clients choose the names of end users. */
const MENTION_OR_LINK = /(?<![\p{L}\p{N}])@(?=[\p{L}\p{N}])|\](?=\()/gu;

/**
 * Returns the body for Slack, in which &, < and > are markup and must be escaped. A zero-width space breaks
 * Mattermost's mentions and links.
 */
function slackText({ text }: AlertBody): string {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replace(MENTION_OR_LINK, "$&\u200b");
  return JSON.stringify({ text: `Sluice: ${escaped}` });
}
