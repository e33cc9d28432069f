/** The store of operators' state: the log of their changes, one-time sign-in links, and sessions that were ended. */
import type { JsonObject } from "../json/mod.ts";
import type { KeyRecord } from "./keys.ts";
import { isoTime } from "./times.ts";

/** All authors of changes. */
export const CHANGE_AUTHORS = [
  ...["admin_key", "viewer_key", "one_time_link", "command_line", "configuration", "gateway"] as const,
] as const;

/**
 * The author of a change. `one_time_link`: an operator who signed in with a one-time link. `command_line`: a command of
 * this program. `configuration`: a configuration that the gateway has read without an operator's request. `gateway`:
 * the gateway itself, at its start.
 */
export type ChangeAuthor = typeof CHANGE_AUTHORS[number];

/** All kinds of changes. */
export const CHANGE_ACTIONS = [
  ...["create_key", "change_key", "rotate_key", "revoke_key"] as const,
  ...[
    "reload_configuration",
    "test_target",
    "send_playground_request",
    "sign_in",
    "sign_out",
    "create_sign_in_link",
  ] as const,
] as const;

/** The kind of a change. */
export type ChangeAction = typeof CHANGE_ACTIONS[number];

/** Author, time and address of a change. */
export interface ChangeOrigin {
  author: ChangeAuthor;
  /** Unix time in milliseconds. */
  at: number;
  /** Address of the client; absent if it is unknown, and for commands. */
  address?: string;
  /**
   * The gateway's id of the admin request that made the change. For a test of a target or a request of the playground,
   * the id of the request that was sent.
   */
  requestId?: string;
}

/** A change to be logged. Its values contain no secrets. */
export interface LoggedChange extends ChangeOrigin {
  action: ChangeAction;
  /** Id of the key, or name of the target; absent for other actions. */
  subject?: string;
  /** Former values of the members that differ; absent if there were none. */
  before?: JsonObject;
  /** New values of the members that differ; absent if there are none. */
  after?: JsonObject;
}

/** A change of the log. */
export interface ChangeRecord extends LoggedChange {
  /** Number of the change, which increases with every change. */
  seq: number;
}

/** A sign-in link or a session. `id`: the hash of the link's token, or the id of the session. */
export interface ExpiringId {
  id: string;
  /** Unix time in milliseconds. */
  expiresAt: number;
}

/** Stores the state of the operators. */
export interface OperatorStore {
  /** Logs a change. Logged changes are never changed, and only `pruneChanges` deletes them. */
  logChange(change: LoggedChange): Promise<void>;
  /**
   * Lists logged changes, the latest first.
   * @param from `before`: only changes with a lower seq; `requestId`: only those of this request
   */
  changes(from: { before?: number; requestId?: string; limit: number }): Promise<ChangeRecord[]>;
  /** Deletes logged changes from before a moment, Unix time in milliseconds. */
  pruneChanges(before: number): Promise<void>;
  /** Stores a sign-in link, and deletes expired ones. @param now Unix time in milliseconds */
  addSignInLink(link: ExpiringId, now: number): Promise<void>;
  /** Deletes a sign-in link, which works once. Returns false if there is none with this hash, or it has expired. */
  takeSignInLink(hash: string, now: number): Promise<boolean>;
  /** Ends a session on all nodes before it expires. */
  endSession(session: ExpiringId, now: number): Promise<void>;
  /** Lists ended sessions that would otherwise still be valid. */
  endedSessions(now: number): Promise<ExpiringId[]>;
}

/**
 * Returns the change of a key to be logged, with the members that differ; `undefined` if none does.
 * @param change `before`: absent if the key is new
 */
export function keyChange(
  origin: ChangeOrigin,
  { action, before, after }: { action: ChangeAction; before?: KeyRecord; after: KeyRecord },
): LoggedChange | undefined {
  const [old, now] = [before === undefined ? {} : describeKey(before), describeKey(after)];
  const differing = Object.keys(now).filter((name) => JSON.stringify(old[name]) !== JSON.stringify(now[name]));
  // A new secret changes no member that the log may show.
  if (differing.length === 0 && action !== "rotate_key") return undefined;
  const pick = (values: JsonObject): JsonObject =>
    Object.fromEntries(differing.map((name) => [name, values[name] ?? null]));
  return {
    ...origin,
    action,
    subject: after.id,
    ...(before !== undefined && { before: pick(old) }),
    after: { ...pick(now), name: after.name },
  };
}

/** Returns a key as the log shows it: without its hashes and its last use. */
function describeKey({ name, group, disabled, rules, ...times }: KeyRecord): JsonObject {
  const { expiresAt, revokedAt, former } = times;
  return {
    name,
    group,
    disabled,
    rules: { ...rules } as JsonObject,
    expires_at: isoTime(expiresAt),
    revoked_at: isoTime(revokedAt),
    former_until: isoTime(former?.until),
  };
}

/** A row of `change_log`, with integers as the database returns them. */
export interface ChangeRow {
  seq: number | bigint;
  at: number | bigint;
  author: string;
  address: string | null;
  request_id: string | null;
  action: string;
  subject: string | null;
  before_values: string | null;
  after_values: string | null;
}

/** Returns the values of a new row, in the order of the columns after `seq`. */
export function toChangeValues(change: LoggedChange): [at: number, ...texts: (string | null)[]] {
  const { at, author, address, requestId, action, subject, before, after } = change;
  const json = (values: JsonObject | undefined) => values === undefined ? null : JSON.stringify(values);
  return [at, author, address ?? null, requestId ?? null, action, subject ?? null, json(before), json(after)];
}

/** Converts a row to a logged change. */
export function toChangeRecord(row: ChangeRow): ChangeRecord {
  return {
    seq: Number(row.seq),
    at: Number(row.at),
    author: row.author as ChangeAuthor,
    ...(row.address !== null && { address: row.address }),
    ...(row.request_id !== null && { requestId: row.request_id }),
    action: row.action as ChangeAction,
    ...(row.subject !== null && { subject: row.subject }),
    ...(row.before_values !== null && { before: JSON.parse(row.before_values) }),
    ...(row.after_values !== null && { after: JSON.parse(row.after_values) }),
  };
}
