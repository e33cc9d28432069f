/** `console`: prints a link that signs in to the console of the running gateway. */
import { acceptsSignInLinks, addSignInLink, SIGN_IN_PATH } from "../access/sign_in_link.ts";
import type { Config } from "../config.ts";
import { originOf } from "./banner.ts";
import { statusAt } from "./health.ts";
import { withStore } from "./command_store.ts";
import { writeErr, writeOut } from "./output.ts";

/** Prints a new link. Returns 1 if no console would accept it. @throws {StoreError} if the store cannot be opened */
export async function printSignInLink({ config }: { config: Config }): Promise<number> {
  const at = originOf(config.admin?.listen ?? config.listen);
  const why = whyNoLink(config, at) ?? await whyNoConsole(at);
  if (why !== undefined) {
    writeErr(`${why}\n`);
    return 1;
  }
  return await withStore(config, async ({ operators }) => {
    const link = await addSignInLink(operators, { at, origin: { author: "command_line", at: Date.now() } });
    writeErr("This link signs you in once, within ten minutes:\n");
    writeOut(`${link}\n`);
    return 0;
  }, { readOnly: false });
}

/** Returns the reason why the configuration allows no link; `undefined` if it allows one. */
function whyNoLink(config: Config, at: string): string | undefined {
  if (!acceptsSignInLinks(config)) {
    return config.admin === undefined
      ? 'The console is off: this gateway does not listen on a loopback address; set "admin" in the configuration'
      : `Links work on loopback addresses only: sign in with the admin key at ${at}/admin/console`;
  }
  if (config.store.kind !== "memory") return undefined;
  return 'Cannot make a link: the store is "memory:", which only the running gateway can see; start it again for a link';
}

/** Returns the reason why no running gateway would accept a link; `undefined` if one would. */
async function whyNoConsole(at: string): Promise<string | undefined> {
  const status = await statusAt(`${at}${SIGN_IN_PATH}`, "HEAD");
  if (status === undefined) return `No gateway answers at ${at}: start it with "sluice", or name its port with --port`;
  return status === 200
    ? undefined
    : `The gateway at ${at} has no console (status ${status}): start it at a terminal, or set "admin" in the configuration`;
}
