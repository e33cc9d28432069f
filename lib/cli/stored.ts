/** The store that commands read beside the running gateway. */
import type { Config } from "../config.ts";
import { openStore } from "../store/open.ts";
import { type Store, StoreError } from "../store/store.ts";

/** What stands in front of the path in the address of a store that is a file. */
const SQLITE = "sqlite:";

/** Opens the store of the configuration, acts on it, and closes it. @throws {StoreError} where there is no such store */
export async function withStored(
  config: Pick<Config, "store">,
  act: (store: Store) => Promise<number>,
): Promise<number> {
  requireFile(config.store);
  const store = openStore(config.store);
  try {
    return await act(store);
  } finally {
    await store.close();
  }
}

/**
 * The path of the file that the store is kept in.
 * @throws {StoreError} where there is none: a command that only reads must not make one
 */
export function requireFile(address: string): string {
  if (address === "memory:") {
    throw new StoreError('Cannot read the store: it is "memory:", which only the running gateway can see');
  }
  const path = address.slice(SQLITE.length);
  if (!isThere(path)) throw new StoreError(`Cannot read the store "${path}": there is no such file`);
  return path;
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch (error) {
    // Anything else than absence is told by the one who opens it.
    return !(error instanceof Deno.errors.NotFound);
  }
}
