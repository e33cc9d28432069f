/** What the gateway keeps between starts. Every store behaves the same: one suite of tests runs against each. */

import type { AnswerStore } from "./answers.ts";

/** An API key as it is kept: never the key, only its hash. */
export interface KeyRecord {
  /** Id of the key, unique for ever. */
  id: string;
  /** Unique among the keys that are not revoked. */
  name: string;
  /** SHA-256 of the key, hexadecimal. */
  hash: string;
  /** Name of the key's group. */
  group: string;
  /** Unix time in milliseconds. */
  createdAt: number;
  /** A disabled key is refused until it is enabled again. */
  disabled: boolean;
  /** Unix time in milliseconds; absent: in use. A revoked key stays listed and cannot come back. */
  revokedAt?: number;
}

/** Where keys and answers are kept. Reads see what another process wrote before them. */
export interface Store {
  /** Keeps a new key. False where its name is taken by a key in use, or its id or hash by any key. */
  addKey(key: KeyRecord): boolean;
  /** The key with this hash, disabled and revoked ones included. */
  findKeyByHash(hash: string): KeyRecord | undefined;
  /** Every key, oldest first. */
  listKeys(): KeyRecord[];
  /** Disables or enables a key. False where no key in use has this id. */
  setDisabled(id: string, disabled: boolean): boolean;
  /** Ends a key for ever; `at` is Unix time in milliseconds. False where no key in use has this id. */
  revokeKey(id: string, at: number): boolean;
  /** Finished answers, for repeats of their requests. */
  readonly answers: AnswerStore;
  /** Frees what the store holds. The store cannot be used afterwards. */
  close(): void;
}

/** A store that cannot be opened. The message is for the operator. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}
