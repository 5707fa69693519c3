// For words.test.

/// A function; its arguments, and those
/// of `those of`.
inline int those() {
  int told = 1; // not told
  return told;
}
