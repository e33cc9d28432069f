/** Answers that end with the process. */
import type { AnswerRecord, AnswerStore } from "./answers.ts";
import { openMemoryClaims } from "./sqlite/claims.ts";

interface Kept {
  record: AnswerRecord;
  sealed: boolean;
  pieces: Uint8Array<ArrayBuffer>[];
}

/** Opens an empty store of answers. */
export function openMemoryAnswers(): AnswerStore {
  /** By id, in the order they were begun. */
  const answers = new Map<number, Kept>();
  /** Ids of the answers that are seen, by scope and key. */
  const sealed = new Map<string, number>();
  let lastId = 0;
  let keptBytes = 0;

  function dropBody(answer: Kept): void {
    if (answer.record.kept) keptBytes -= answer.record.bytes;
    answer.record = { ...answer.record, kept: false };
    answer.pieces = [];
  }

  function forget(id: number): void {
    const answer = answers.get(id);
    if (answer === undefined) return;
    dropBody(answer);
    answers.delete(id);
    const name = nameOf(answer.record);
    if (sealed.get(name) === id) sealed.delete(name);
  }

  return {
    ...openMemoryClaims(),
    find(scope, key) {
      const id = sealed.get(nameOf({ scope, key }));
      const record = id === undefined ? undefined : answers.get(id)?.record;
      const found = id === undefined || record === undefined
        ? undefined
        : { ...record, headers: { ...record.headers }, id };
      return Promise.resolve(found);
    },
    begin(record, { maxBytes }) {
      const id = ++lastId;
      const kept = record.kept && keptBytes + record.bytes <= maxBytes;
      answers.set(id, { record: { ...record, headers: { ...record.headers }, kept }, sealed: false, pieces: [] });
      if (kept) keptBytes += record.bytes;
      return Promise.resolve({ id, kept });
    },
    write(id, index, piece) {
      const answer = answers.get(id);
      if (answer !== undefined) answer.pieces[index] = piece.slice();
      return Promise.resolve();
    },
    seal(id) {
      const answer = answers.get(id);
      if (answer === undefined) return Promise.resolve();
      const name = nameOf(answer.record);
      const older = sealed.get(name);
      if (older !== undefined) forget(older);
      answer.sealed = true;
      sealed.set(name, id);
      return Promise.resolve();
    },
    read: (id, index) => Promise.resolve(answers.get(id)?.pieces[index]?.slice()),
    keptBytes: () => Promise.resolve(keptBytes),
    prune({ until, maxBytes, maxAnswers }) {
      for (const [id, { record }] of answers) {
        if (record.doneAt <= until || answers.size > maxAnswers) forget(id);
      }
      for (const answer of answers.values()) {
        if (keptBytes <= maxBytes) break;
        if (answer.sealed) dropBody(answer);
      }
      return Promise.resolve(false);
    },
  };
}

function nameOf({ scope, key }: { scope: string; key: string }): string {
  return JSON.stringify([scope, key]);
}
