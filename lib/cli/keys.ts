/** `keys`: creates, lists, changes, rotates, revokes, exports and imports API keys of the store. */
import { changeKey, createKey, type KeyAdmin, publicKey, revokeKey, rotateKey } from "../access/key_admin.ts";
import { importKeys, readKeyLines, writeKeyLines } from "../access/key_transfer.ts";
import type { LoadedConfig } from "../config/load.ts";
import { GatewayError } from "../errors.ts";
import { type Invocation, readFlags, UsageError } from "./arguments.ts";
import type { CommandName } from "./commands.ts";
import { warningText } from "./warnings/warning.ts";
import { keyWarnings } from "./warnings/groups.ts";
import { parseDuration } from "../store/times.ts";
import { parseExpiry, parseKeyRules } from "./key_rules.ts";
import { keyText } from "./key_text.ts";
import { type KeyReport, listKeys, showKey } from "./list_keys.ts";
import { counted, writeErr, writeOut } from "./output.ts";
import { withStore } from "./command_store.ts";

/** Default time during which the old and the new secret of a key are both valid. */
const DEFAULT_OVERLAP = "24h";

/** Commands about keys. */
export type KeysCommand = Extract<CommandName, `keys ${string}`>;

/** The command line, and access to the keys. */
interface KeysInvocation extends Pick<Invocation, "operand" | "values" | "switches"> {
  admin: KeyAdmin & KeyReport["admin"];
  /** False if the models of the configuration are unknown. */
  hasModels: boolean;
}

/**
 * The actions of the commands. Texts beside a new key go to standard error, so that a script can read the key from
 * standard output.
 */
const ACTIONS: Readonly<Record<KeysCommand, (invocation: KeysInvocation) => Promise<void>>> = {
  async "keys add"({ admin, operand: name, values, switches, hasModels }) {
    const group = values.group ?? "default";
    const rules = parseKeyRules({ values, switches }, {});
    const expiresAt = await parseExpiry(values.expires, admin.now()) ?? undefined;
    const { key, record } = await createKey(admin, {
      name,
      group,
      ...(rules !== undefined && { rules }),
      ...(expiresAt !== undefined && { expiresAt }),
    });
    if (hasModels) reportWarnings(admin.config, record);
    writeErr(`Added key "${name}" (${record.id}) to group "${group}". It is shown only now:\n`);
    writeOut(`${key}\n`);
  },
  "keys list": listKeys,
  "keys show": showKey,
  async "keys change"({ admin, operand, values, switches, hasModels }) {
    // An empty change reads the key, and throws if it cannot be changed.
    const { rules: present } = await changeKey(admin, operand, {});
    const rules = parseKeyRules({ values, switches }, present);
    const expiresAt = await parseExpiry(values.expires, admin.now());
    const change = {
      ...(values.group !== undefined && { group: values.group }),
      ...(rules !== undefined && { rules }),
      ...(expiresAt !== undefined && { expiresAt }),
    };
    if (Object.keys(change).length === 0) throw new UsageError("Expected what to change, such as --group or --rpm");
    const record = await changeKey(admin, operand, change);
    if (hasModels) reportWarnings(admin.config, record);
    writeOut(keyText(publicKey(record, admin.now())));
  },
  async "keys disable"({ admin, operand }) {
    const { name, id } = await changeKey(admin, operand, { disabled: true });
    writeOut(`Key "${name}" (${id}) is disabled\n`);
  },
  async "keys enable"({ admin, operand }) {
    const { name, id } = await changeKey(admin, operand, { disabled: false });
    writeOut(`Key "${name}" (${id}) is enabled\n`);
  },
  async "keys revoke"({ admin, operand }) {
    const { name, id } = await revokeKey(admin, operand);
    writeOut(`Key "${name}" (${id}) is revoked\n`);
  },
  async "keys rotate"({ admin, operand, values }) {
    const overlapMs = await readFlags(() => parseDuration(values.overlap ?? DEFAULT_OVERLAP));
    const { key, record } = await rotateKey(admin, operand, { overlapMs });
    const { name, id, former_until } = publicKey(record, admin.now());
    const former = former_until === null
      ? "The old secret is no longer valid"
      : `The old secret is valid until ${former_until}`;
    writeErr(`Key "${name}" (${id}) has a new secret. ${former}. The new one is shown only now:\n`);
    writeOut(`${key}\n`);
  },
  async "keys export"({ admin }) {
    writeOut(writeKeyLines(await admin.store.keys.list()));
  },
  async "keys import"({ admin }) {
    const { added, present } = await importKeys(admin, readKeyLines(await new Response(Deno.stdin.readable).text()));
    writeOut(`Imported ${counted(added, "key")}; the store had ${present} already\n`);
  },
};

const READING: ReadonlySet<KeysCommand> = new Set(["keys list", "keys show", "keys export"]);

/**
 * Runs a command and returns the exit code. Changes apply to a running gateway with its next request if the store is a
 * file, and within two seconds if it is a database.
 * @throws {StoreError} if the store cannot be opened
 * @throws {UsageError} if the value of a flag is invalid
 */
export async function keys(
  command: KeysCommand,
  { loaded: { config, members }, operand, values, switches }:
    & Pick<Invocation, "operand" | "values" | "switches">
    & { loaded: Pick<LoadedConfig, "config" | "members"> },
): Promise<number> {
  const readOnly = READING.has(command);
  return await withStore(config, async (store) => {
    try {
      await ACTIONS[command]({
        admin: { config, store, now: Date.now, origin: { author: "command_line", at: Date.now() } },
        operand,
        values,
        switches,
        hasModels: members === undefined,
      });
      return 0;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      writeErr(`${error.message}\n`);
      return 1;
    }
  }, { readOnly, mayCreate: !readOnly });
}

/** Prints warnings about the rules of a key. They refuse nothing, because models may be added later. */
function reportWarnings(config: LoadedConfig["config"], record: Parameters<typeof keyWarnings>[1]): void {
  for (const warning of keyWarnings(config, record)) writeErr(`Warning: ${warningText(warning)}\n`);
}
