/** Reads the end user and the tags that a client names for a request. */
import type { Meter } from "../billing/meter.ts";
import { GatewayError } from "../errors.ts";
import { isObject, type Json } from "../json/mod.ts";
import { plainText } from "../text.ts";
import { stringOf } from "../protocols/members.ts";

/** End user and tags of a request. */
type Attributed = Pick<Meter, "attribute">;

const USER_HEADER = "x-sluice-user";
const TAGS_HEADER = "x-sluice-tags";

/** Most characters of an end user, and of a tag. */
const USER_CHARACTERS = 256;
const TAG_CHARACTERS = 64;
/** Most tags of a request. */
const MOST_TAGS = 10;

/** Reads the headers of a request. @throws {GatewayError} `invalid` where they are malformed */
export function attributeRequest(meter: Attributed, headers: Pick<Headers, "get">): void {
  const user = headers.get(USER_HEADER);
  const tags = headers.get(TAGS_HEADER);
  if (user !== null) meter.attribute({ user: readUser(user) });
  if (tags !== null) meter.attribute({ tags: readTags(tags) });
}

function readUser(text: string): string {
  if (text.length <= USER_CHARACTERS && /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)) return text;
  throw new GatewayError(
    "invalid",
    `Cannot read the header "${USER_HEADER}": expected 1 to ${USER_CHARACTERS} printable ASCII characters`,
  );
}

function readTags(text: string): string[] {
  const tags = [...new Set(text.split(",").map((tag) => tag.trim()))];
  const isTag = (tag: string) => tag.length <= TAG_CHARACTERS && /^[A-Za-z0-9._:/=@+-]+$/.test(tag);
  if (tags.length <= MOST_TAGS && tags.every(isTag)) return tags;
  throw new GatewayError(
    "invalid",
    `Cannot read the header "${TAGS_HEADER}": expected at most ${MOST_TAGS} tags, separated by commas, of 1 to ` +
      `${TAG_CHARACTERS} letters, digits and . _ : / = @ + - each`,
  );
}

/**
 * Reads the end user of a body: `safety_identifier` or `user` of OpenAI's protocols, `metadata.user_id` of messages. A
 * header takes precedence. Vendors take these members in any form, so none is refused here: a long one is cut, and control
 * characters become spaces.
 */
export function attributeUser(
  meter: Attributed,
  { safety_identifier, user, metadata }: { safety_identifier?: Json; user?: Json; metadata?: Json },
): void {
  const named = stringOf(safety_identifier) ?? stringOf(user) ??
    (isObject(metadata) ? stringOf(metadata.user_id) : undefined);
  if (named === undefined) return;
  const clean = plainText(named, USER_CHARACTERS);
  if (clean !== "") meter.attribute({ user: clean });
}
