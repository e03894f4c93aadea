/**
 * What reasons mean and what to do, one text for each: a new reason without a text does not compile. docs/reference/reasons.md is
 * made from the texts in this directory.
 */
export interface ReasonText {
  readonly means: string;
  /** Empty where there is nothing to do. */
  readonly todo: string;
}

/** One text for each reason. */
export type Texts<Reason extends string> = Readonly<Record<Reason, ReasonText>>;
/** One text for each reason of a list. */
export type TextsOf<List extends Readonly<Record<string, string>>> = Texts<List[keyof List]>;

export const text = (means: string, todo = ''): ReasonText => ({ means, todo });

/** Of `AsExpected`, whatever it is about. */
export const OK: ReasonText = text('All is well.');
