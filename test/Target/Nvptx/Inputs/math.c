// Compares expanded functions with those of the C library, evaluated in double.
// Prints the functions that are less accurate than 2e-7 (relative), tanh than
// 3.5e-7, with the argument; results below 2^-125 may be 0.
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

float flash_exp(float);
float flash_tanh(float);
float flash_expm1(float);
float flash_log(float);
float flash_log2(float);
float flash_log10(float);
float flash_log1p(float);
float flash_cbrt(float);
float flash_sinh(float);
float flash_cosh(float);
float flash_asinh(float);
float flash_acosh(float);
float flash_atanh(float);
float flash_sin(float);
float flash_cos(float);
float flash_tan(float);
float flash_asin(float);
float flash_acos(float);
float flash_atan(float);
float flash_erf(float);
float flash_erfc(float);
float flash_pow(float, float);
float flash_atan2(float, float);
float flash_remf(float, float);
float flash_powi(float, int32_t);
int32_t flash_ipowi(int32_t, int32_t);
_Bool flash_isfinite(float);
_Bool flash_isinf(float);
_Bool flash_isnan(float);
_Bool flash_isnormal(float);

static const struct {
  const char *name;
  float (*ours)(float);
  double (*exact)(double);
} functions[] = {
    {"exp", flash_exp, exp},
    {"tanh", flash_tanh, tanh},
    {"expm1", flash_expm1, expm1},
    {"log", flash_log, log},
    {"log2", flash_log2, log2},
    {"log10", flash_log10, log10},
    {"log1p", flash_log1p, log1p},
    {"cbrt", flash_cbrt, cbrt},
    {"sinh", flash_sinh, sinh},
    {"cosh", flash_cosh, cosh},
    {"asinh", flash_asinh, asinh},
    {"acosh", flash_acosh, acosh},
    {"atanh", flash_atanh, atanh},
    {"sin", flash_sin, sin},
    {"cos", flash_cos, cos},
    {"tan", flash_tan, tan},
    {"asin", flash_asin, asin},
    {"acos", flash_acos, acos},
    {"atan", flash_atan, atan},
    {"erf", flash_erf, erf},
    {"erfc", flash_erfc, erfc}};

static double error(float ours, double exact) {
  float rounded = (float)exact;
  if (isnan(exact))
    return isnan(ours) ? 0.0 : INFINITY;
  if (ours == rounded && (ours != 0 || !signbit(ours) == !signbit(rounded)))
    return 0.0;
  if (fabs(exact) < 2 * FLT_MIN && fabs(ours) <= 2 * FLT_MIN)
    return 0.0;
  // The largest float and infinity are neighbours.
  if (isinf(ours) && fabs(exact) > FLT_MAX * (1.0 - 2e-7) && ours * exact > 0)
    return 0.0;
  if (!isfinite(ours))
    return INFINITY;
  return fabs(ours - exact) / fabs(exact);
}

static float fromBits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static int failures = 0;

static void report(const char *name, double worst, double x, double y,
                   float ours, double exact) {
  const double limit = !strcmp(name, "tanh") ? 3.5e-7 : 2e-7;
  if (worst <= limit)
    return;
  ++failures;
  printf("%s(%a, %a) = %a, expected %a: error %.2g\n", name, x, y, ours, exact,
         worst);
}

static void testUnary(void) {
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
    const char *name = functions[i].name;
    int isAngle = !strcmp(name, "sin") || !strcmp(name, "cos") ||
                  !strcmp(name, "tan");
    double worst = 0.0, exactThere = 0.0;
    float there = 0.0f, oursThere = 0.0f;
    // A prime step; 0, infinity and 1 come first.
    const uint32_t special[] = {0,          0x80000000, 0x7f800000, 0xff800000,
                                0x3f800000, 0xbf800000, 0x7fc00000};
    for (uint64_t n = 0; n < (1ull << 32) / 9973 + 7; ++n) {
      float x = fromBits(n < 7 ? special[n] : (uint32_t)((n - 7) * 9973));
      if (isAngle && isfinite(x) && fabsf(x) >= 0x1p48f)
        continue;
      float ours = functions[i].ours(x);
      double exact = functions[i].exact(x), found = error(ours, exact);
      if (found > worst) {
        worst = found;
        there = x;
        oursThere = ours;
        exactThere = exact;
      }
    }
    report(name, worst, there, 0.0, oursThere, exactThere);
  }
}

/// The quotient never passes 1, and is as accurate where it comes near.
static void testTanh(void) {
  for (float x = 2.0f; x < 10.0f; x = nextafterf(x, 11.0f)) {
    float ours = flash_tanh(x);
    report("tanh", error(ours, tanh(x)), x, 0.0, ours, tanh(x));
    report("tanh", fabsf(ours) <= 1 ? 0.0 : INFINITY, x, 0.0, ours, tanh(x));
    if (failures >= 20)
      return;
  }
}

static void testBinary(float x, float y) {
  double exact = pow(x, y);
  float ours = flash_pow(x, y);
  report("pow", error(ours, exact), x, y, ours, exact);
  exact = atan2(x, y);
  ours = flash_atan2(x, y);
  report("atan2", error(ours, exact), x, y, ours, exact);
  if (!(fabsf(y) < 0x1p31f))
    return;
  int32_t n = (int32_t)y;
  exact = pow(x, n);
  ours = flash_powi(x, n);
  report("powi", error(ours, exact), x, n, ours, exact);
}

/// The remainder is exact, and a zero has the sign of x.
static void testRemainder(float x, float y) {
  double exact = fmod(x, y);
  float ours = flash_remf(x, y);
  int same = isnan(exact) ? isnan(ours)
                          : ours == exact && !signbit(ours) == !signbit(exact);
  report("remf", same ? 0.0 : INFINITY, x, y, ours, exact);
}

/// Numbers of any size, and those next to multiples.
static void testRemainders(uint32_t state) {
  for (int i = 0; i < 300000 && failures < 20; ++i) {
    uint32_t first = state = state * 1664525 + 1013904223;
    uint32_t second = state = state * 1664525 + 1013904223;
    float x = fromBits(first), y = fromBits(second);
    testRemainder(x, y);
    float multiple = (first >> 8) * (y / 64);
    testRemainder(multiple, y);
    testRemainder(nextafterf(multiple, 0.0f), y);
    testRemainder(nextafterf(multiple, INFINITY), y);
  }
}

static void testClasses(void) {
  // All exponents, with the smallest and the largest fractions.
  for (uint32_t i = 0; i < 512; ++i)
    for (uint32_t fraction = 0; fraction != 4; ++fraction) {
      float x = fromBits(i << 23 | (fraction & 1) | (fraction >> 1) * 0x7ffffe);
      int ours = flash_isfinite(x) | flash_isinf(x) << 1 | flash_isnan(x) << 2 |
                 flash_isnormal(x) << 3;
      int exact = !!isfinite(x) | !!isinf(x) << 1 | !!isnan(x) << 2 |
                  !!isnormal(x) << 3;
      report("classes", ours == exact ? 0.0 : INFINITY, x, 0.0, ours, exact);
    }
}

static void testPowersOfIntegers(void) {
  for (int32_t x = -9; x <= 9; ++x)
    for (int32_t n = -9; n <= 9; ++n) {
      if (x == 0 && n < 0)
        continue;
      double exact = trunc(pow(x, n));
      int32_t ours = flash_ipowi(x, n);
      report("ipowi", ours == exact ? 0.0 : INFINITY, x, n, ours, exact);
    }
  report("ipowi", flash_ipowi(3, 20) == (int32_t)3486784401u ? 0 : INFINITY, 3,
         20, flash_ipowi(3, 20), 3486784401.0);
}

int main(void) {
  testUnary();
  const float special[] = {0.0f,     -0.0f,   0.5f,  -0.5f,    1.0f, -1.0f,
                           2.0f,     -2.0f,   3.0f,  -3.0f,    2.5f, -2.5f,
                           INFINITY, -INFINITY, NAN, 0x1p-126f, FLT_MAX,
                           0x1p24f,  0x1.fffffep23f, 0x1.000002p0f};
  const int count = sizeof(special) / sizeof(special[0]);
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < count; ++j) {
      testBinary(special[i], special[j]);
      testRemainder(special[i], special[j]);
    }
  uint32_t state = 1;
  for (int i = 0; i < 200000 && failures < 20; ++i) {
    uint32_t first = state = state * 1664525 + 1013904223;
    uint32_t second = state = state * 1664525 + 1013904223;
    // Exponents near that of 1, where powers are neither 0 nor infinity.
    float x = fromBits((first & 0x80ffffff) + 0x3f000000);
    float y = fromBits((second & 0x83ffffff) + 0x3f000000);
    testBinary(x, y);
    testBinary(x, floorf(y));
  }
  testTanh();
  testPowersOfIntegers();
  testClasses();
  testRemainders(1);
  return failures != 0;
}
