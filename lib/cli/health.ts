/** `health`: checks that a gateway is running, for health checks of containers, whose image has no curl. */
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import type { Config } from "../config.ts";
import type { ServingState } from "../doctor/gateway.ts";
import { originOf } from "./banner.ts";
import { writeErr, writeOut } from "./output.ts";

const TIMEOUT_MS = 4_000;

/** Requests `/healthz` at the address of the configuration. Returns 1 if the answer is not 200, or if there is none. */
export async function health({ listen, admin }: Pick<Config, "listen" | "admin">): Promise<number> {
  // Any process might answer on a shared port, so the admin listener is used if there is one.
  const url = `${originOf(listen.reuse_port ? admin?.listen ?? listen : listen)}/healthz`;
  const status = await statusAt(url);
  if (status === 200) {
    // Without a readable configuration, this may be another gateway.
    writeOut(`The gateway at ${url} is alive\n`);
    return 0;
  }
  writeErr(status === undefined ? `No gateway answers at ${url}\n` : `The gateway at ${url} answered ${status}\n`);
  return 1;
}

/** Returns what `/readyz` of a gateway answers; `undefined` if no gateway answers within 4 seconds. */
export async function readinessAt(origin: string): Promise<ServingState | undefined> {
  try {
    const { status, message }: ServingState = JSON.parse(await text(await send(`${origin}/readyz`)));
    return typeof status === "string"
      ? { status, ...(message !== undefined && { message: String(message) }) }
      : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the status of the answer at a URL; `undefined` if none comes within 4 seconds. */
export async function statusAt(url: string, method: "GET" | "HEAD" = "GET"): Promise<number | undefined> {
  try {
    const response = await send(url, method);
    response.destroy();
    return response.statusCode;
  } catch {
    return undefined;
  }
}

/**
 * Sends a request without following redirects. Unlike `fetch`, it never asks a proxy of the environment, which cannot
 * reach this machine's own addresses. Rejects if no answer comes within 4 seconds.
 */
function send(url: string, method: "GET" | "HEAD" = "GET"): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(url, { method, signal: AbortSignal.timeout(TIMEOUT_MS) }, resolve).on("error", reject).end();
  });
}
