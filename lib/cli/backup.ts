/** `backup`: copies the store, also while a gateway uses it. */
import type { Config } from "../config.ts";
import { backupStore } from "../store/sqlite/backup.ts";
import type { Invocation } from "./arguments.ts";
import { writeOut } from "./output.ts";
import { requireFile } from "./command_store.ts";

/** Copies the store to a new file. @throws {StoreError} if the file exists or cannot be written */
export async function backup(
  { config, operand: to }: Pick<Invocation, "operand"> & { config: Config },
): Promise<number> {
  const from = requireFile(config.store);
  await backupStore(from, to);
  writeOut(`Copied the store "${from}" to "${to}", ${(await Deno.stat(to)).size} bytes\n`);
  return 0;
}
