/** `health`: checks that a gateway is running, for container engines without curl in the image. */
import type { Config } from "../config.ts";
import { originOf } from "./banner.ts";
import { writeErr, writeOut } from "./output.ts";

const TIMEOUT_MS = 4_000;

/** Asks `/healthz` at the address that the configuration listens on. Returns 1 for any answer but 200, and for none. */
export async function health({ listen, admin }: Pick<Config, "listen" | "admin">): Promise<number> {
  // On a shared port any of the processes might answer.
  const url = `${originOf(listen.reuse_port ? admin?.listen ?? listen : listen)}/healthz`;
  const status = await statusAt(url);
  if (status === 200) {
    writeOut("alive\n");
    return 0;
  }
  writeErr(status === undefined ? `No gateway answers at ${url}\n` : `The gateway at ${url} answered ${status}\n`);
  return 1;
}

/** The status of an answer, without following redirects; `undefined` if there is none within four seconds. */
export async function statusAt(url: string, method: "GET" | "HEAD" = "GET"): Promise<number | undefined> {
  try {
    const response = await fetch(url, { method, signal: AbortSignal.timeout(TIMEOUT_MS), redirect: "manual" });
    await response.body?.cancel();
    return response.status;
  } catch {
    return undefined;
  }
}
