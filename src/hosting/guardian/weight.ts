/** A string has a header; an object and a list have one, and a slot for each value. Bytes. */
const HEADER = 32;
const SLOT = 8;
/** Objects with more keys than that are tables, and their keys are nobody else's: a pod's annotations, for example. */
const FEW_KEYS = 16;
const TABLE_SLOT = 96;

/**
 * About what a JSON value takes in memory, bytes. Its length as text does not say: of `{"name":"A"}` a thousand times, of many
 * short annotations, and of texts that are not Latin, it would be a third, a fifth and a half. What is between one and two
 * times the truth here keeps a peer from having more than its share by the form of what it writes.
 */
export function weightOf(value: unknown): number {
  if (typeof value === 'string') return HEADER + value.length * (isNarrow(value) ? 1 : 2);
  if (typeof value !== 'object' || value === null) return SLOT;
  if (Array.isArray(value)) return value.reduce<number>((sum, it) => sum + SLOT + weightOf(it), HEADER);
  const fields = Object.entries(value);
  const isTable = fields.length > FEW_KEYS;
  return fields.reduce(
    (sum, [key, it]) => sum + (isTable ? TABLE_SLOT + key.length : SLOT) + weightOf(it),
    HEADER,
  );
}

/** A string with one character beyond takes two bytes for each of its characters. */
const isNarrow = (text: string): boolean => !/[\u0100-\uffff]/.test(text);
