/**
 * Describes shapes of JSON values, which `scan.ts` matches without creating the values. A shape accepts less than a
 * schema: it describes what nearly all clients send. All other values are parsed and checked.
 */

/** The shape of a value. The value may have any of the types that are defined here. */
export interface Shape {
  readonly text: TextShape | undefined;
  readonly list: ListShape | undefined;
  readonly object: ObjectShape | undefined;
  readonly isNullable: boolean;
  readonly isBoolean: boolean;
}

/** The shape of a string. Lengths are in bytes of its JSON, which has at least one byte per character. */
export interface TextShape {
  /** The allowed strings in UTF-8, without escapes; undefined if any string is allowed. */
  readonly words: readonly Uint8Array[] | undefined;
  /** Shortest length. */
  readonly min: number;
  /** Longest length. */
  readonly max: number;
  /** True if it may have only letters, digits and `_ - . :`. */
  readonly isName: boolean;
  /** True if the model reads it, so that its tokens count. */
  readonly isRead: boolean;
  /** True if it is opaque. It must have no escape and must not begin with `SEAL_PREFIX`. */
  readonly isSealed: boolean;
  /** The form of an image: padded base64, or a data URL with it; undefined for any string. */
  readonly image: "base64" | "url" | undefined;
}

/** Prefix of an opaque string that the gateway has put into an envelope of its own. */
export const SEAL_PREFIX = "sluice1.";

/** The shape of an array. */
export interface ListShape {
  readonly items: Shape;
  /** Minimum number of entries. */
  readonly min: number;
  /** Maximum number of entries. */
  readonly max: number;
}

/** The shape of an object. */
export interface ObjectShape {
  /** Members with a shape; undefined if there are none. */
  readonly members: ReadonlyMap<string, MemberShape> | undefined;
  /** True if it may have other members, of any shape. */
  readonly isOpen: boolean;
  /** The allowed combinations of members. */
  readonly variants: readonly Variant[];
  /** Names of the variants' kinds. */
  readonly kinds: readonly string[];
  /** True if the model reads it, so that its tokens count. */
  readonly isRead: boolean;
  /** True if it is a prompt-cache mark. */
  readonly isMark: boolean;
}

/** A combination of members that an object may have. */
export interface Variant {
  /** Bits of the required members. */
  needs: number;
  /** Bits of the optional members. */
  may: number;
  /** Bit of the kind; 0 if it has none. A list passes the kinds of its objects to the object around it. */
  kind: number;
  /** True if objects of this variant are counted in `ContentSizes.rare`. */
  isRare: boolean;
}

/** A member of an object. It has a bit, or several bits if variants distinguish its values. */
export interface MemberShape {
  readonly shape: Shape;
  /** All bits of the member. */
  readonly bits: number;
  /** Bit for any value that has no bit of its own. */
  readonly bit: number;
  /** Bit for a list, instead of `bit`. */
  readonly listBit: number;
  /** Bit for null, instead of `bit`. */
  readonly nullBit: number;
  /** Bits for each of the words, instead of `bit`. */
  readonly wordBits: readonly number[];
  /** Position of the bits for the kinds of the objects in a list. */
  readonly kindShift: number;
}

/** Creates all shapes, because V8 reads objects of one hidden class faster. */
function shapeOf({ text, list, object, isNullable = false, isBoolean = false }: Partial<Shape>): Shape {
  return { text, list, object, isNullable, isBoolean };
}

const ANY_TEXT: TextShape = {
  words: undefined,
  min: 0,
  max: Infinity,
  isName: false,
  isRead: false,
  isSealed: false,
  image: undefined,
};
const encoder = new TextEncoder();

/** A string that the model reads. */
export const readText: Shape = shapeOf({ text: { ...ANY_TEXT, isRead: true } });

/** A string of at least one byte that the model reads. */
export const someText: Shape = shapeOf({ text: { ...ANY_TEXT, min: 1, isRead: true } });

/** Any string. */
export const anyText: Shape = shapeOf({ text: ANY_TEXT });

/** An opaque string that is passed on unchanged, such as a signature. */
export const sealedText: Shape = shapeOf({ text: { ...ANY_TEXT, isSealed: true } });

/** An image in base64. */
export const imageBase64: Shape = shapeOf({ text: { ...ANY_TEXT, image: "base64" } });

/** A data URL with an image of one of `IMAGE_TYPES` in base64. */
export const imageUrl: Shape = shapeOf({ text: { ...ANY_TEXT, image: "url" } });

/** Media types of images that all vendors read. */
export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"] as const;

/** Only null. */
export const nothing: Shape = shapeOf({ isNullable: true });

/** Returns the shape of a string of 1 to `max` bytes. */
export function idText(max: number): Shape {
  return shapeOf({ text: { ...ANY_TEXT, min: 1, max } });
}

/** Returns the shape of a string of 1 to `max` bytes that the model reads. */
export function nameText(max: number, { isName }: { isName: boolean }): Shape {
  return shapeOf({ text: { ...ANY_TEXT, min: 1, max, isName, isRead: true } });
}

/** Returns the shape of one of these strings. */
export function words(...texts: string[]): Shape {
  return shapeOf({ text: { ...ANY_TEXT, words: texts.map((text) => encoder.encode(text)) } });
}

/** A boolean. */
export const boolean: Shape = shapeOf({ isBoolean: true });

/** Returns the shape of an array. */
export function list(items: Shape, { min = 0, max }: { min?: number; max: number }): Shape {
  return shapeOf({ list: { items, min, max } });
}

/** Any object, which the model reads. */
export const readObject: Shape = shapeOf({
  object: {
    members: undefined,
    isOpen: true,
    variants: [{ needs: 0, may: 0, kind: 0, isRare: false }],
    kinds: [],
    isRead: true,
    isMark: false,
  },
});

/**
 * Returns the shape of an object with these members.
 * @param variants the allowed combinations of members. Each lists member names, separated by spaces; `?` before a name
 * marks an optional member. `name=` can be followed by a value: a word, `null`, `list` (for members that may also be
 * strings), or the kind of an object in the list. `kind: ` before a variant names the kind of the object itself.
 */
export function object(
  members: Readonly<Record<string, Shape>>,
  variants: readonly string[],
  { rare = [], isMark = false, isOpen = false, isRead = false }: {
    rare?: readonly string[];
    isMark?: boolean;
    isOpen?: boolean;
    isRead?: boolean;
  } = {},
): Shape {
  const bits = new Map<string, number>();
  const kinds: string[] = [];
  const shapes = new Map(Object.entries(members).map(([name, shape]) => [name, memberOf(name, shape, bits)]));
  return shapeOf({
    object: {
      members: shapes,
      variants: [
        ...variants.map((text) => variantOf(text, { bits, kinds, isRare: false })),
        ...rare.map((text) => variantOf(text, { bits, kinds, isRare: true })),
      ],
      kinds,
      isOpen,
      isRead,
      isMark,
    },
  });
}

/** Creates the shape of a member with new bits. @param all the bits of the object by name, to which they are added */
function memberOf(name: string, shape: Shape, all: Map<string, number>): MemberShape {
  const first = all.size;
  const bitOf = (name: string) => {
    if (all.size === 31) throw new RangeError("Cannot tell more than 31 members apart");
    const bit = 1 << all.size;
    all.set(name, bit);
    return bit;
  };
  const texts = shape.text?.words?.map((word) => new TextDecoder().decode(word)) ?? [];
  const wordBits = texts.length > 1 ? texts.map((word) => bitOf(`${name}=${word}`)) : [];
  const bit = wordBits.length > 0 ? 0 : bitOf(name);
  const listBit = shape.text !== undefined && shape.list !== undefined ? bitOf(`${name}=list`) : bit;
  const nullBit = shape.isNullable ? bitOf(`${name}=null`) : 0;
  const kindShift = all.size;
  for (const kind of shape.list?.items.object?.kinds ?? []) bitOf(`${name}=${kind}`);
  return { shape, bit, listBit, nullBit, wordBits, kindShift, bits: (1 << all.size) - (1 << first) };
}

function variantOf(
  variant: string,
  { bits, kinds, isRare }: { bits: ReadonlyMap<string, number>; kinds: string[]; isRare: boolean },
): Variant {
  const [, label, text = ""] = /^(?:(\w+): )?(.*)$/s.exec(variant) ?? [];
  if (label !== undefined && !kinds.includes(label)) kinds.push(label);
  const sets = { needs: 0, may: 0 };
  for (const name of text.split(" ").filter((name) => name !== "")) {
    const isOptional = name.startsWith("?");
    const bit = bits.get(isOptional ? name.slice(1) : name);
    if (bit === undefined) throw new RangeError(`Cannot find the member ${name}`);
    sets[isOptional ? "may" : "needs"] |= bit;
  }
  return { ...sets, kind: label === undefined ? 0 : 1 << kinds.indexOf(label), isRare };
}

/** Returns the shape of a value that has one of these shapes. There may be at most one of each type. */
export function either(...shapes: readonly Shape[]): Shape {
  return shapeOf({
    text: shapes.find(({ text }) => text)?.text,
    list: shapes.find(({ list }) => list)?.list,
    object: shapes.find(({ object }) => object)?.object,
    isNullable: shapes.some(({ isNullable }) => isNullable),
    isBoolean: shapes.some(({ isBoolean }) => isBoolean),
  });
}

/** Returns the shape of a value that has the given shape or is null. */
export function nullable(shape: Shape): Shape {
  return shapeOf({ ...shape, isNullable: true });
}
